"""Versions of requests: which there are, and how client and controller agree on one.

| version | how it is asked for | fields that the controller does not know |
|---|---|---|
| 1 | no header, as release 0.1 sends it, or `x-logberg-version: 1` | refused: people mistype |
| 2 | `x-logberg-version: 2` | ignored: they are those of a newer client |

Rule: every answer of a controller says its range in `x-logberg-versions`; release 0.1 says none. A
client begins with version 1 at each controller and goes on with the highest that both know. A field
that a request gained in a version is sent in that version and later ones only.

A reply has no version: its reader ignores fields that it does not know, also in release 0.1.
"""

from collections.abc import Mapping
from typing import Final

from metadata.errors import ErrorCode, LogbergError
from metadata.messages.header_names import with_both_names

VERSION_HEADER: Final = "x-logberg-version"
"""Of a request: the version it is written in."""
RANGE_HEADER: Final = "x-logberg-versions"
"""Of an answer: the versions that the controller reads, as in `1-2`."""
UNVERSIONED: Final = 1
TOLERANT: Final = 2
"""From this version on, unknown fields are ignored."""
OLDEST: Final = 1
NEWEST: Final = 2
_TEXT_MAX = 16


def range_text(newest: int = NEWEST) -> str:
    """Return the value of RANGE_HEADER."""
    return f"{OLDEST}-{newest}"


def version_of(headers: Mapping[str, str], newest: int = NEWEST) -> int:
    """Return the version that a request says. Raises LogbergError (UNSUPPORTED_VERSION)."""
    text = headers.get(VERSION_HEADER)
    if text is None:
        return UNVERSIONED
    version = _number(text)
    if version is not None and OLDEST <= version <= newest:
        return version
    raise LogbergError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"the header {VERSION_HEADER} is {text[:_TEXT_MAX]!r}; this controller reads requests of "
        f"versions {OLDEST} to {newest}, and a request without the header as one of version "
        f"{UNVERSIONED}",
        {"minVersion": str(OLDEST), "maxVersion": str(newest)},
    )


def highest_common(said: str | None) -> int:
    """Return the highest version that both know, after an answer with this RANGE_HEADER.

    UNVERSIONED for no header (release 0.1) and for a range that has nothing in common with ours:
    the controller's next answer says so in a sentence.
    """
    low, dash, high = (said or "").partition("-")
    oldest, newest = _number(low), _number(high)
    if not dash or oldest is None or newest is None:
        return UNVERSIONED
    common = min(newest, NEWEST)
    return common if common >= max(oldest, OLDEST) else UNVERSIONED


def _number(text: str) -> int | None:
    # isdigit alone takes digits of other scripts.
    plain = text.isascii() and text.isdigit() and len(text) <= _TEXT_MAX
    return int(text) if plain else None


class Agreed:
    """The version that a client uses with each controller, by URL."""

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}

    def version(self, url: str) -> int:
        """Return the version for the next request."""
        return self._versions.get(url, UNVERSIONED)

    def headers(self, url: str) -> dict[str, str]:
        """Return what the next request says of its version: nothing in version 1."""
        version = self.version(url)
        return {} if version == UNVERSIONED else {VERSION_HEADER: str(version)}

    def named(self, url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return a request's headers under the names that the controller knows.

        A controller whose version is not known may be of release 0.1: it gets both names.
        """
        return headers if self.version(url) > UNVERSIONED else with_both_names(headers)

    def heard(self, url: str, headers: Mapping[str, str]) -> bool:
        """Note an answer. Returns whether the version went down: another build runs there."""
        before = self.version(url)
        self._versions[url] = highest_common(headers.get(RANGE_HEADER))
        return self._versions[url] < before

    def forget(self, url: str) -> None:
        """Begin anew: nobody answered, and whoever answers next may be of another build."""
        self._versions.pop(url, None)
