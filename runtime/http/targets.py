"""Reads the target of a request: its decoded path, and the parameters after `?`.

Rule: every accepted target has exactly one meaning. A target that two programs could understand
differently (an absolute one, a repeated parameter, an encoded slash) is refused.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, unquote

PARAMETERS_MAX: Final = 64
_REMEMBERED_MAX: Final = 128
"""The most characters of parameters that are remembered."""
_REMEMBERED: Final = frozenset(
    {"assignments", "consistency", "format", "keysOnly", "limit", "minOffset", "waitMs"}
)
"""Parameters that name nobody. Others may hold the name of a person, which an erasure must not
leave in this process's memory."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class TargetError(ValueError):
    """A target is refused; the message says why."""


def path_and_query(target: str) -> tuple[str, Mapping[str, str]]:
    """Return the decoded path and the parameters. Raises TargetError."""
    raw_path, _, raw_query = target.partition("?")
    path = raw_path
    if "%" in raw_path:
        if "%2f" in raw_path.lower():
            raise TargetError("an encoded slash in the path")
        try:
            path = unquote(raw_path, errors="strict")
        except UnicodeDecodeError:
            raise TargetError("the path is not UTF-8") from None
    if not path.startswith("/"):
        raise TargetError("the request's target must be a path")
    if not (raw_path.isascii() and path.isprintable()) or "\\" in path or "#" in target:
        raise TargetError("a forbidden character in the path")
    if "/." in path and not {".", ".."}.isdisjoint(path.split("/")):
        raise TargetError("the path goes by . or ..")
    if not raw_query:
        return path, _NONE
    if len(raw_query) <= _REMEMBERED_MAX and _names_nobody(raw_query):
        return path, _known_parameters(raw_query)
    return path, _parameters(raw_query)


def _names_nobody(raw_query: str) -> bool:
    return all(part.partition("=")[0] in _REMEMBERED for part in raw_query.split("&"))


def _parameters(raw_query: str) -> Mapping[str, str]:
    try:
        pairs = parse_qsl(
            raw_query, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX
        )
    except ValueError:
        raise TargetError("the parameters after ? cannot be read") from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise TargetError("a parameter is given twice")
    return MappingProxyType(parameters)


_known_parameters = lru_cache(maxsize=256)(_parameters)
"""Most requests have the same few parameters, such as `consistency=stale`."""
