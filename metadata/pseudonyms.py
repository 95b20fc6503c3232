"""Pseudonyms: what stands for a person's name in the log (ADR 0093).

A pseudonym is `p-` and the number of a subject in base32. The number is drawn at random, so it says
nothing about the name. The subject's key seals the name (`PseudonymRecord`). Once that key is
destroyed, nobody can say whose pseudonym it was.

Rule: only the log gives pseudonyms. A login under a name of this form is refused.
"""

import re
from base64 import b32decode, b32encode
from functools import lru_cache
from typing import Final

from metadata.errors import ErrorCode, LogbergError
from metadata.subject_keys import NUMBER_BYTES

_PREFIX: Final = "p-"
_DIGITS: Final = 13
"""Of base32, for 8 bytes."""
_FORM: Final = re.compile(f"{_PREFIX}[a-z2-7]{{{_DIGITS}}}")
_USER: Final = "User:"
_OF_THE_LOG: Final = frozenset({"token", "delegation-token"})
"""Methods of callers whose principal the log, or the settings, say. With any other, the principal
is a name that somebody chose elsewhere."""
UNKNOWN: Final = "User:p-unknown"
"""Stands in the trail of attempts for a person whose pseudonym the controller did not know."""


def pseudonym_of(number: bytes) -> str:
    """Return the pseudonym with this number."""
    return _PREFIX + b32encode(number).decode().rstrip("=").lower()


def number_of_pseudonym(name: str) -> bytes | None:
    """Return the number in a pseudonym; None: the name is none."""
    # Only what has the form is remembered: an erased name must not stay in memory.
    return _number_in(name) if _FORM.fullmatch(name) else None


@lru_cache(maxsize=4_096)
def _number_in(name: str) -> bytes | None:
    number = b32decode(name.removeprefix(_PREFIX).upper() + "===")
    return number if len(number) == NUMBER_BYTES and pseudonym_of(number) == name else None


def is_pseudonym(principal: str) -> bool:
    """Return whether a principal is a pseudonym, or stands for a person who has none."""
    if not principal.startswith(_USER):
        return False
    return principal == UNKNOWN or number_of_pseudonym(principal.removeprefix(_USER)) is not None


def person_words(principal: str, name: str | None) -> str:
    """Return a principal for people to read: `User:alice@example.com (p-…)` if its name is known.

    Without a name it is as it was.
    """
    return f"{_USER}{name} ({principal.removeprefix(_USER)})" if name else principal


def name_place(pseudonym: str) -> str:
    """Return the place that a sealed name is bound to."""
    return f"name/{pseudonym}"


def pattern_problem(pattern: str) -> str:
    """Return why a setting is no pattern of principals; empty: it is one."""
    if not pattern.startswith(_USER) or pattern == _USER:
        return f"{pattern!r} does not begin with User: and a name, such as User:*@example.com"
    if any(sign in pattern for sign in "?[]"):
        return f"{pattern!r} has one of the signs ? [ ]: only * stands for other characters"
    return ""


def check_own_name(principal: str, method: str) -> None:
    """Refuse a login under a name that only the log gives. Raises LogbergError.

    `method`: how the caller was authenticated, as in `runtime.http.requests.Caller`.
    """
    if method not in _OF_THE_LOG and is_pseudonym(principal):
        raise LogbergError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{principal} has the form of a pseudonym, which only the log gives: use "
            "credentials with another name",
            {"principal": principal, "lacks": "a name that is no pseudonym"},
        )
