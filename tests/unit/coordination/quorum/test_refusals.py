"""Which refusal of a controller becomes which error: every code that coordination's routes have."""

import pytest

from coordination.backend import EntryExists
from coordination.backends.quorum.refusals import error_of
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
    StepRefused,
    TxnTooLarge,
    Unavailable,
    ValueTooLarge,
)
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.errors import ErrorReply, error_reply

CODE = ErrorCode
ERRORS: dict[ErrorCode, type[CoordinationError]] = {
    CODE.SESSION_LOST: SessionLost,
    CODE.ENTRY_EXISTS: EntryExists,
    CODE.NOT_HELD: NotHeld,
    CODE.KEY_EXISTS: KeyExists,
    CODE.KEY_MISSING: KeyMissing,
    CODE.REVISION_MISMATCH: RevisionMismatch,
    CODE.FENCED: Fenced,
    CODE.INVALID_KEY: InvalidKey,
    CODE.VALUE_TOO_LARGE: ValueTooLarge,
    CODE.TXN_TOO_LARGE: TxnTooLarge,
    CODE.BODY_TOO_LARGE: TxnTooLarge,
    CODE.COORDINATION_FULL: Unavailable,
    CODE.DISK_FULL: Unavailable,
    CODE.THROTTLED: Unavailable,
    CODE.UNAUTHENTICATED: AuthFailed,
    CODE.CLUSTER_AUTHORIZATION_FAILED: AuthFailed,
    CODE.INVALID_REQUEST: ConfigError,
    CODE.UNSUPPORTED_VERSION: ConfigError,
    CODE.FEATURE_UPDATE_FAILED: ConfigError,
    CODE.NOT_FOUND: ConfigError,
    CODE.REQUEST_ID_REUSED: CoordinationError,
    CODE.UNKNOWN_SERVER_ERROR: CoordinationError,
}


def error(code: ErrorCode, **details: str) -> CoordinationError:
    """As the answer to a commit with two checks and one fence."""
    return error_of(error_reply(LogbergError(code, "why", details)), code.status, 2, 1)


@pytest.mark.parametrize("code", ERRORS)
def test_a_code_has_its_error_and_says_that_nothing_was_done(code: ErrorCode) -> None:
    found = error(code)
    assert type(found) is ERRORS[code]
    assert found.outcome == "not_applied"
    assert "why" in str(found)


@pytest.mark.parametrize(
    ("code", "step", "index"),
    [
        (CODE.REVISION_MISMATCH, {"check": "1"}, 1),
        (CODE.FENCED, {"fence": "0"}, 2),
        (CODE.KEY_EXISTS, {"operation": "0"}, 3),
        (CODE.KEY_MISSING, {"operation": "4"}, 7),
        (CODE.REVISION_MISMATCH, {"operation": "1"}, 4),
        (CODE.KEY_EXISTS, {}, None),
    ],
)
def test_a_step_is_counted_from_the_checks_on(
    code: ErrorCode, step: dict[str, str], index: int | None
) -> None:
    found = error(code, **step)
    assert isinstance(found, StepRefused)
    assert found.index == index


@pytest.mark.parametrize(("current", "number"), [("7", 7), ("0", 0), ("-1", None)])
def test_what_is_there_instead_comes_with_the_error(current: str, number: int | None) -> None:
    mismatch = error(CODE.REVISION_MISMATCH, current=current)
    assert isinstance(mismatch, RevisionMismatch)
    assert mismatch.current == number
    fenced = error(CODE.FENCED, current=current)
    assert isinstance(fenced, Fenced)
    assert fenced.current_token == number
    large = error(CODE.VALUE_TOO_LARGE, limit="9")
    assert isinstance(large, ValueTooLarge)
    assert large.limit == 9


def test_a_newer_controllers_code_is_told_by_whether_to_try_again() -> None:
    assert type(error_of(ErrorReply("NEW", "why", retriable=True), 409)) is Unavailable
    final = error_of(ErrorReply("NEW", "why"), 409)
    assert type(final) is CoordinationError
    assert str(final) == "NEW: why"
