"""Every error has a status, a fault, and a sentence that says what to do."""

from typing import cast

import pytest

from metadata.errors import ErrorCode, Fault, LogbergError

STATUSES = {400, 401, 403, 404, 405, 408, 409, 410, 412, 413, 415, 416, 421, 429, 500, 503, 507}
# Clients' retry loops depend on these: they never change.
FIXED = {
    ErrorCode.NOT_CONTROLLER: (421, True),
    ErrorCode.NO_QUORUM: (503, True),
    ErrorCode.DISK_FULL: (507, True),
    ErrorCode.REQUEST_ID_REUSED: (409, False),
    ErrorCode.REQUEST_EXPIRED: (409, False),
    ErrorCode.STALE_BROKER_EPOCH: (409, False),
    ErrorCode.INCONSISTENT_CLUSTER_ID: (409, False),
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: (409, True),
    ErrorCode.UNAUTHENTICATED: (401, False),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (403, False),
    ErrorCode.INVALID_REQUEST: (400, False),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (404, False),
    ErrorCode.TOPIC_ALREADY_EXISTS: (409, False),
    ErrorCode.BODY_TOO_LARGE: (413, False),
    ErrorCode.THROTTLED: (429, True),
    ErrorCode.STATE_DIVERGED: (503, False),
}


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_is_complete(code: ErrorCode) -> None:
    assert code.value == code.name
    assert code.status in STATUSES
    assert code.fault in Fault
    assert code.advice.endswith(".")
    assert 15 < len(code.advice) < 140
    assert (code.status, code.fault, code.retriable, code.advice) == tuple(code.facts)


@pytest.mark.parametrize("code", ErrorCode)
def test_the_status_fits_the_fault(code: ErrorCode) -> None:
    if code.fault is Fault.CLIENT:
        assert 400 <= code.status < 500
    if code.status >= 500:
        assert code.fault is not Fault.CLIENT
    if code.fault is Fault.CLUSTER:
        assert code.retriable


def test_names_and_advice_are_distinct() -> None:
    assert len({code.value for code in ErrorCode}) == len(ErrorCode.__members__)
    assert len({code.advice for code in ErrorCode}) == len(ErrorCode)


@pytest.mark.parametrize(("code", "facts"), FIXED.items())
def test_what_others_rely_on(code: ErrorCode, facts: tuple[int, bool]) -> None:
    assert (code.status, code.retriable) == facts


def test_an_error_says_what_to_do_even_without_a_message() -> None:
    error = LogbergError(ErrorCode.NO_QUORUM)
    assert error.message == ErrorCode.NO_QUORUM.advice
    assert str(error) == f"NO_QUORUM: {ErrorCode.NO_QUORUM.advice}"
    assert dict(error.details) == {}


def test_details_are_a_copy_that_nobody_changes() -> None:
    details = {"topic": "a"}
    error = LogbergError(ErrorCode.INVALID_CONFIG, "no", details)
    details["topic"] = "b"
    assert error.details["topic"] == "a"
    with pytest.raises(TypeError):
        cast("dict[str, str]", error.details)["topic"] = "c"
