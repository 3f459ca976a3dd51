"""The service: an explainer behind HTTP, with a page for people. Needs the extra ``serve``."""

from ..errors import MissingExtraError

try:
    from .app import create_app
    from .settings import ServiceLimits, ServiceSettings
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f'The service needs {error.name}: pip install "mcce[serve]".'
    ) from error

__all__ = ["ServiceLimits", "ServiceSettings", "create_app"]
