"""One administrator's request on its way: what it asks of our routes, and its one answer.

Rule: an error of the route, or of the translation of its reply, is an answer in the response's own
form. So a request that changed something always gets its answer.

Handlers are generators: they yield while they read a long request, and `then` may be one that
yields while it reads a long reply. `run` runs them in slices.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from kafka_listener.asking.asking import Asking
from kafka_listener.asking.error_codes import kafka_code, throttle_ms
from kafka_listener.asking.failures import failure
from kafka_listener.asking.in_steps import SHORT, run
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, Fields, KafkaFailure, KafkaRequest, Steps
from kafka_listener.asking.turns import Turns
from metadata.errors import LogbergError
from metadata.messages.errors import ErrorReply

T = TypeVar("T", bound=msgspec.Struct)
NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})
ELEMENTS_MAX: Final = 40_000
"""The most elements of a request here. Our routes take 10,000 entries with 80,000 values in one
request, so a request with more elements could not be asked anyway."""


class AdminCall:
    """A Kafka request, the way to our routes, and the way back."""

    def __init__(self, asking: Asking, request: KafkaRequest, answer: Answer) -> None:
        self._asking = asking
        self.clock = asking.clock
        self._answer = answer
        self.request = request
        self.fields: Fields = request.fields
        self.version = request.version

    @property
    def dry_run(self) -> bool:
        """Whether the client only wants the request checked."""
        # Kafka's schema of CreateTopics spells it with a small letter.
        return bool(self.fields.get("ValidateOnly") or self.fields.get("validateOnly"))

    def run(self, steps: Steps) -> None:
        """Run a handler. Raises what it raises at once; a later error answers the request."""
        short = self.request.elements <= SHORT
        run(self.clock, steps, self.failed_later, at_once=short)

    def run_if_long(self, steps: Steps | None) -> None:
        """Go on in slices, if a handler or a reader of a reply returned steps."""
        if steps is not None:
            self.run(steps)

    def answer(self, fields: Fields) -> None:
        """Answer with a response."""
        self._answer(fields)

    def fail(self, error: LogbergError) -> None:
        """Answer that the request failed as a whole."""
        self._fail(kafka_code(error), error.message, throttle_ms(error))

    def change(
        self,
        method: str,
        path: str,
        message: msgspec.Struct,
        reply_type: type[T],
        then: Callable[[T], Steps | None],
        expect_offset: int | None = None,
    ) -> None:
        """Send a change; `then` gets the reply. A refusal answers the request."""
        self._asking.change(
            self.request,
            method,
            path,
            message,
            reply_type,
            self._unless_failed(then),
            expect_offset=expect_offset,
        )

    def change_or_error(
        self,
        method: str,
        path: str,
        message: msgspec.Struct,
        reply_type: type[T],
        then: Callable[[T | LogbergError], Steps | None],
        expect_offset: int | None = None,
    ) -> None:
        """Send a change; `then` gets the reply or the refusal."""

        def on_outcome(outcome: T | LogbergError) -> None:
            self.run_if_long(then(outcome))

        self._asking.change(
            self.request, method, path, message, reply_type, on_outcome, expect_offset=expect_offset
        )

    def read(
        self,
        path: str,
        reply_type: type[T],
        then: Callable[[T], Steps | None],
        query: Mapping[str, str] = NO_QUERY,
    ) -> None:
        """Read; `then` gets the reply. A refusal answers the request."""
        self._asking.read(self.request, path, reply_type, self._unless_failed(then), query)

    def read_or_error(
        self, path: str, reply_type: type[T], then: Callable[[T | LogbergError], None]
    ) -> None:
        """Read; `then` gets the reply or the refusal."""
        self._asking.read(self.request, path, reply_type, then)

    def read_all(
        self,
        path: str,
        reply_type: type[T],
        then: Callable[[list[T]], Steps | None],
        query: Mapping[str, str] = NO_QUERY,
    ) -> None:
        """Read a list to its end; `then` gets its pages, which are of one image."""
        pages: list[T] = []
        asked = dict(query)

        def on_page(page: T) -> Steps | None:
            pages.append(page)
            continuation: str | None = getattr(page, "continuation", None)
            if continuation is None:
                return then(pages)
            asked["continuation"] = continuation
            turns.next()
            return None

        turns = Turns(
            self.clock,
            lambda: self.read(path, reply_type, on_page, dict(asked)),
            self.failed_later,
        )
        turns.next()

    def _unless_failed(
        self, then: Callable[[T], Steps | None]
    ) -> Callable[[T | LogbergError], None]:
        def on_outcome(outcome: T | LogbergError) -> None:
            if isinstance(outcome, LogbergError):
                self.fail(outcome)
                return
            try:
                self.run_if_long(then(outcome))
            except KafkaFailure as refused:
                self._fail(refused.code, refused.message)

        return on_outcome

    def failed_later(self, error: Exception) -> None:
        """Answer that a step failed which the loop called, and not the handler."""
        if isinstance(error, KafkaFailure):
            self._fail(error.code, error.message)
            return
        self.fail(self._asking.defect_of(self.request, error))

    def _fail(self, code: KafkaCode, message: str, wait_ms: int = 0) -> None:
        key, known = self.request.api_key, self._known(code)
        self._answer(failure(key, self.version, self.fields, known, message, wait_ms))

    def code_of(self, error: ErrorReply | LogbergError | None) -> int:
        """Return what one entry's ErrorCode says; 0 without an error."""
        if error is None:
            return int(KafkaCode.NONE)
        return int(self._known(kafka_code(error)))

    def result(self, error: ErrorReply | LogbergError | None) -> dict[str, Any]:
        """Return ErrorCode and ErrorMessage of one entry."""
        return {
            "ErrorCode": self.code_of(error),
            "ErrorMessage": None if error is None else error.message,
        }

    def _known(self, code: KafkaCode) -> KafkaCode:
        """Return a code that clients of this version know (KIP-599); they ask again with both."""
        since = _THROTTLED_SINCE.get(self.request.api_key, 0)
        if code is KafkaCode.THROTTLING_QUOTA_EXCEEDED and self.version < since:
            return KafkaCode.REQUEST_TIMED_OUT
        return code


def invalid(message: str) -> dict[str, Any]:
    """Return ErrorCode and ErrorMessage of an entry that no route is asked about."""
    return {"ErrorCode": int(KafkaCode.INVALID_REQUEST), "ErrorMessage": message}


_THROTTLED_SINCE: Final[Mapping[int, int]] = MappingProxyType({19: 6, 20: 5, 37: 3})
