"""From a controller's error answer to an error of coordination.

Rule: the code decides, never the sentence. A code that is not known here becomes Unavailable if the
controller says that a repeat may help, and a plain CoordinationError if not.
"""

from collections.abc import Callable, Mapping

from coordination.backend import EntryExists
from coordination.errors import (
    AuthFailed,
    ConfigError,
    CoordinationError,
    Fenced,
    InvalidKey,
    KeyExists,
    KeyMissing,
    NotHeld,
    RevisionMismatch,
    SessionLost,
    TxnTooLarge,
    Unavailable,
    ValueTooLarge,
)
from coordination.types import Revision, Token
from metadata.messages.errors import ErrorReply

_REFUSED_WHO = frozenset({401, 403})
_PLAIN: Mapping[str, type[CoordinationError]] = {
    "SESSION_LOST": SessionLost,
    "NOT_HELD": NotHeld,
    "INVALID_KEY": InvalidKey,
    "TXN_TOO_LARGE": TxnTooLarge,
    "BODY_TOO_LARGE": TxnTooLarge,
    "COORDINATION_FULL": Unavailable,
    "ENTRY_EXISTS": EntryExists,
    "INVALID_REQUEST": ConfigError,
    "UNSUPPORTED_VERSION": ConfigError,
    "FEATURE_UPDATE_FAILED": ConfigError,
}


def error_of(reply: ErrorReply, status: int, checks: int = 0, fences: int = 0) -> CoordinationError:
    """Return the error for an answer; `checks` and `fences` of the commit count its steps."""
    details = reply.details

    def step(first: int, name: str) -> int | None:
        return first + int(details[name]) if name in details else None

    index = step(0, "check")
    if index is None:
        index = step(checks + fences, "operation")
    of_steps: Mapping[str, Callable[[], CoordinationError]] = {
        "KEY_EXISTS": lambda: KeyExists(reply.message, index=index),
        "KEY_MISSING": lambda: KeyMissing(reply.message, index=index),
        "REVISION_MISMATCH": lambda: RevisionMismatch(
            reply.message, current=_revision(details.get("current")), index=index
        ),
        "FENCED": lambda: Fenced(
            reply.message, current_token=_token(details.get("current")), index=step(checks, "fence")
        ),
        "VALUE_TOO_LARGE": lambda: ValueTooLarge(
            reply.message, limit=int(details.get("limit", "0"))
        ),
    }
    if reply.code in of_steps:
        return of_steps[reply.code]()
    if reply.code == "NOT_FOUND":
        return ConfigError(
            f"these controllers are of a release without coordination ({reply.message}); upgrade "
            "them, then raise logberg.version to 4"
        )
    if reply.code in _PLAIN:
        return _PLAIN[reply.code](reply.message)
    if status in _REFUSED_WHO:
        return AuthFailed(reply.message)
    kind = Unavailable if reply.retriable else CoordinationError
    return kind(f"{reply.code}: {reply.message}")


def _revision(text: str | None) -> Revision | None:
    return None if text is None or int(text) < 0 else Revision(int(text))


def _token(text: str | None) -> Token | None:
    return None if text is None or int(text) < 0 else Token(int(text))
