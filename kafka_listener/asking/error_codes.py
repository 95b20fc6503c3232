"""Our error codes as Kafka's numbers.

Rule: a code that Kafka has too keeps its number. Any other gets the one that makes Kafka's clients
do the right thing: NOT_CONTROLLER sends them to another controller, REQUEST_TIMED_OUT and
THROTTLING_QUOTA_EXCEEDED let them ask again, INVALID_REQUEST stops them. The map has every code.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kafka_listener.asking.kafka_code import KafkaCode
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.errors import ErrorReply

_E, _K = ErrorCode, KafkaCode
_OURS_ONLY: Final[Mapping[ErrorCode, KafkaCode]] = MappingProxyType(
    {
        # Another controller may do it. Kafka, too, says so of what it dropped when it resigned.
        _E.NO_QUORUM: _K.NOT_CONTROLLER,
        _E.STATE_DIVERGED: _K.NOT_CONTROLLER,
        _E.SHUTTING_DOWN: _K.NOT_CONTROLLER,
        # It may be done later.
        _E.THROTTLED: _K.THROTTLING_QUOTA_EXCEEDED,
        _E.BODY_TIMED_OUT: _K.REQUEST_TIMED_OUT,
        _E.CONTINUATION_EXPIRED: _K.REQUEST_TIMED_OUT,
        _E.STALE_EXPECTED_OFFSET: _K.REQUEST_TIMED_OUT,
        _E.DISK_FULL: _K.KAFKA_STORAGE_ERROR,
        _E.STORAGE_ERROR: _K.KAFKA_STORAGE_ERROR,
        # The same request fails again.
        _E.UNAUTHENTICATED: _K.CLUSTER_AUTHORIZATION_FAILED,
        _E.MALFORMED_BODY: _K.INVALID_REQUEST,
        _E.BODY_TOO_LARGE: _K.INVALID_REQUEST,
        _E.UNSUPPORTED_MEDIA_TYPE: _K.INVALID_REQUEST,
        _E.NOT_FOUND: _K.INVALID_REQUEST,
        _E.METHOD_NOT_ALLOWED: _K.INVALID_REQUEST,
        _E.REQUEST_EXPIRED: _K.INVALID_REQUEST,
        _E.REQUEST_FROM_FUTURE: _K.INVALID_REQUEST,
        _E.REQUEST_ID_REUSED: _K.INVALID_REQUEST,
        _E.PLAN_CHANGED: _K.INVALID_REQUEST,
        _E.SOURCE_LEADS: _K.POLICY_VIOLATION,
        _E.VOTERS_NOT_READY: _K.INVALID_REQUEST,
        _E.IMPORT_INCOMPLETE: _K.INVALID_REQUEST,
        _E.CONTROLLER_ID_NOT_REGISTERED: _K.UNKNOWN_CONTROLLER_ID,
        # No Kafka request asks for coordination.
        _E.SESSION_LOST: _K.INVALID_REQUEST,
        _E.ENTRY_EXISTS: _K.INVALID_REQUEST,
        _E.NOT_HELD: _K.INVALID_REQUEST,
        _E.KEY_EXISTS: _K.INVALID_REQUEST,
        _E.KEY_MISSING: _K.INVALID_REQUEST,
        _E.REVISION_MISMATCH: _K.INVALID_REQUEST,
        _E.FENCED: _K.INVALID_REQUEST,
        _E.INVALID_KEY: _K.INVALID_REQUEST,
        _E.VALUE_TOO_LARGE: _K.INVALID_REQUEST,
        _E.TXN_TOO_LARGE: _K.INVALID_REQUEST,
        _E.COORDINATION_FULL: _K.INVALID_REQUEST,
    }
)
_NUMBERS: Final = MappingProxyType(
    {code: _OURS_ONLY[code] if code in _OURS_ONLY else KafkaCode[code.name] for code in ErrorCode}
)


def kafka_code(error: LogbergError | ErrorReply | ErrorCode) -> KafkaCode:
    """Return Kafka's code for one of our errors."""
    if isinstance(error, LogbergError):
        return _NUMBERS[error.code]
    if isinstance(error, ErrorReply):
        return _NUMBERS[error.known_code()]
    return _NUMBERS[error]


def throttle_ms(error: LogbergError | ErrorReply) -> int:
    """Return after how many ms to ask again, for a response's ThrottleTimeMs; 0: at once."""
    return error.retry_after_ms or 0
