"""The versions of requests, and how a client and a controller agree on one.

| version | header of the request | a field that the controller does not know |
|---|---|---|
| 1 | none, as in release 0.1, or `x-logberg-version: 1` | is refused: it may be misspelt |
| 2 | `x-logberg-version: 2` | is ignored: a newer client may have sent it |

Rule: every answer of a controller names its range in `x-logberg-versions`; release 0.1 names none.
A client begins with version 1 at each controller, and then uses the highest version that both know.
A client sends a field that came with a version only in that version and later ones.

A reply has no version: every client, also of release 0.1, ignores fields that it does not know.
"""

from collections.abc import Mapping
from typing import Final

from metadata.errors import ErrorCode, LogbergError
from metadata.messages.header_names import with_both_names

VERSION_HEADER: Final = "x-logberg-version"
"""In a request: its version."""
RANGE_HEADER: Final = "x-logberg-versions"
"""In an answer: the versions that the controller reads, such as `1-2`."""
UNVERSIONED: Final = 1
"""The version of a request without the header."""
TOLERANT: Final = 2
"""From this version on, the controller ignores unknown fields."""
OLDEST: Final = 1
NEWEST: Final = 2
_TEXT_MAX = 16


def range_text(newest: int = NEWEST) -> str:
    """Return the value of RANGE_HEADER."""
    return f"{OLDEST}-{newest}"


def version_of(headers: Mapping[str, str], newest: int = NEWEST) -> int:
    """Return the version that a request names. Raises LogbergError (UNSUPPORTED_VERSION)."""
    text = headers.get(VERSION_HEADER)
    if text is None:
        return UNVERSIONED
    version = _number(text)
    if version is not None and OLDEST <= version <= newest:
        return version
    raise LogbergError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"the header {VERSION_HEADER} is {text[:_TEXT_MAX]!r}; this controller reads requests of "
        f"versions {OLDEST} to {newest}. It reads a request without the header as version "
        f"{UNVERSIONED}",
        {"minVersion": str(OLDEST), "maxVersion": str(newest)},
    )


def highest_common(said: str | None) -> int:
    """Return the highest version that we and a controller know; `said` is its RANGE_HEADER.

    Returns UNVERSIONED without a header (release 0.1), and for a range without a version that we
    know; in that case the controller's next answer is an error that says so.
    """
    low, dash, high = (said or "").partition("-")
    oldest, newest = _number(low), _number(high)
    if not dash or oldest is None or newest is None:
        return UNVERSIONED
    common = min(newest, NEWEST)
    return common if common >= max(oldest, OLDEST) else UNVERSIONED


def _number(text: str) -> int | None:
    # isdigit alone also accepts digits of other scripts.
    plain = text.isascii() and text.isdigit() and len(text) <= _TEXT_MAX
    return int(text) if plain else None


class Agreed:
    """A client's version for each controller, by URL."""

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}

    def version(self, url: str) -> int:
        """Return the version for the next request."""
        return self._versions.get(url, UNVERSIONED)

    def knows(self, url: str) -> bool:
        """Tell whether the controller has answered before."""
        return url in self._versions

    def headers(self, url: str) -> dict[str, str]:
        """Return the version header of the next request; version 1 has none."""
        version = self.version(url)
        return {} if version == UNVERSIONED else {VERSION_HEADER: str(version)}

    def named(self, url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return a request's headers under the names that the controller knows.

        A controller that has named no range may run release 0.1, so it gets both names.
        """
        return headers if self.version(url) > UNVERSIONED else with_both_names(headers)

    def heard(self, url: str, headers: Mapping[str, str]) -> bool:
        """Note the headers of an answer. Returns whether the version is lower now than before.

        Then an older build runs at that URL.
        """
        before = self.version(url)
        self._versions[url] = highest_common(headers.get(RANGE_HEADER))
        return self._versions[url] < before

    def forget(self, url: str) -> None:
        """Begin with version 1 again: the controller is gone, and may return as another build."""
        self._versions.pop(url, None)
