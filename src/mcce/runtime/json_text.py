"""JSON that others wrote, read strictly: for receipts, files, requests and replies alike.

Always true: no key of an object is read twice, so two readers cannot see different values.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

# An escape of half a character, with or without its other half.
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class NotJsonError(ValueError):
    """Text that is no JSON, and why; it quotes nothing."""


class UnusableJsonError(ValueError):
    """JSON that could be read in two ways, and why; it quotes nothing."""


def read_json(text: str | bytes, *, nan: bool = False) -> Any:
    """The content of a JSON text in UTF-8; with ``nan``, NaN and Infinity are numbers.

    Raises :class:`NotJsonError` or :class:`UnusableJsonError`.

    Examples
    --------
    >>> read_json('{"age": 36}')
    {'age': 36}
    >>> read_json('{"age": 36, "age": 63}')
    Traceback (most recent call last):
        ...
    mcce.runtime.json_text.UnusableJsonError: an object that has a key twice
    """
    constants = None if nan else _refuse_constant
    try:
        text = text if isinstance(text, str) else text.decode("utf-8-sig")
        content = json.loads(text, parse_constant=constants, object_pairs_hook=_unique_keys)
        if SURROGATE.search(text):
            json.dumps(content, ensure_ascii=False).encode()
    except UnusableJsonError:
        raise
    except UnicodeDecodeError:
        raise NotJsonError("text that is no UTF-8") from None
    except UnicodeEncodeError:
        raise UnusableJsonError(
            "half a character: an escape from \\ud800 to \\udfff without its other half"
        ) from None
    except RecursionError:
        raise NotJsonError("values that are nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NotJsonError(f"something else at character {error.pos}") from None
    except ValueError:
        raise NotJsonError("a number of too many digits") from None
    return content


def _refuse_constant(_: str) -> NoReturn:
    raise UnusableJsonError("NaN or Infinity, which JSON does not know: write null")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise UnusableJsonError("an object that has a key twice")
    return content
