"""The service: an explainer behind HTTP, with a page for people. Needs the extra ``serve``."""

from ..errors import missing_extra

try:
    from .app import create_app
    from .settings import ServiceLimits, ServiceSettings
except ModuleNotFoundError as error:
    raise missing_extra(error.name or "a library", "serve", "The service") from error

__all__ = ["ServiceLimits", "ServiceSettings", "create_app"]
