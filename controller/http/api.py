"""Takes in HTTP requests: routes, versions, header names, rights, errors.

`Api.handle(request, reply)` answers every request exactly once, now or later. It knows nothing of
connections. What answers an allowed request is in `controller.http.answering`.

- Bodies are JSON or MessagePack, by `content-type`, and for the answer by `accept`.
- An answer whose status isn't 200 has an `ErrorReply` as its body. There are three exceptions:
  MetadataFetch has its error in the field `error`, a snapshot's range has status 206, and
  /health/ready has a `HealthReply`.
- A request may name its version. Every answer says which versions the controller reads
  (`metadata.messages.versions`).
- A change takes the headers `x-logberg-request-id`, `-reason`, `-client-id`, `-on-behalf-of`
  and `-expect-offset`. A broker that forwards a request names its client in `-client-address`, and
  everything behind this door knows the client's address as the caller's.
  Release 0.1 calls them `x-quorate-…` (`metadata.messages.header_names`).
"""

from collections.abc import Callable, Generator
from typing import Any

import msgspec

from controller.config import ControllerConfig
from controller.http.access_checks import AccessChecks
from controller.http.answering.route_answers import RouteAnswers
from controller.http.attempt_noting import OF_CALLERS, AttemptNoting
from controller.http.call import Call, OnReply
from controller.http.degraded import ask_of
from controller.http.fetch_content import unreadable
from controller.http.metrics import ControllerMetrics
from controller.http.node_view import NodeView
from controller.http.route import Route
from controller.http.routes import RouteMatch, find_route
from controller.http.slow_requests import SlowRequests
from controller.people.door import PeopleDoor
from metadata.errors import LogbergError
from metadata.messages.header_names import (
    check_names,
    has_old_names,
    knows_new_names,
    with_both_names,
    with_new_names,
)
from metadata.messages.versions import (
    RANGE_HEADER,
    TOLERANT,
    UNVERSIONED,
    range_text,
    version_of,
)
from metadata.pseudonyms import check_own_name
from runtime.clock import Clock
from runtime.http.requests import Reply, Request
from runtime.loop.slices import run_in_slices
from runtime.tracing import RequestTrace, Tracing


class Api:
    """Takes in the requests of one controller."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        node: NodeView,
        metrics: ControllerMetrics,
        answers: RouteAnswers,
        slow_requests: SlowRequests,
        access_checks: AccessChecks,
        attempts: AttemptNoting,
        people: PeopleDoor,
        tracing: Tracing | None = None,
    ) -> None:
        """`tracing`: for changes, and for requests of callers that trace them."""
        self._newest_version = config.newest_version
        self._range: dict[str, str] = {}
        """Says which versions of requests this controller reads. Release 0.1 doesn't say."""
        if self._newest_version != UNVERSIONED:
            self._range[RANGE_HEADER] = range_text(self._newest_version)
        self._range_twice = with_both_names(self._range)
        """The same for callers that may only know the old name."""
        self._clock = clock
        self._node = node
        self._leader = node.leader
        self._metrics = metrics
        self._answers = answers
        self._slow_requests = slow_requests
        self._access_checks = access_checks
        self._attempts = attempts
        self._people = people
        self._tracing = tracing

    def handle(self, request: Request, on_reply: OnReply) -> None:
        """Answer a request exactly once, now or later."""
        new_names = knows_new_names(request.headers)

        def answer(reply: Reply) -> None:
            if new_names:
                headers = {**reply.headers, **self._range}
            else:
                headers = {**with_both_names(reply.headers), **self._range_twice}
            on_reply(Reply(reply.status, reply.body, headers, reply.parts))

        self._begin(find_route(request.method, request.path), request, answer)

    def handle_joined(self, found: RouteMatch, request: Request, on_reply: OnReply) -> None:
        """Answer a change that came among others; the caller's name was checked with them."""
        self._begin(found, request, on_reply, joined=True)

    def _begin(
        self, found: RouteMatch, request: Request, on_reply: OnReply, *, joined: bool = False
    ) -> None:
        """Answer a request that came alone, or a change that came among others."""
        operation = "unknown" if found.route is None else found.route.name
        arrived = self._clock.monotonic()
        trace = None
        if self._tracing is not None and found.route is not None:
            trace = begin_trace(self._tracing, found.route, request)
            request = msgspec.structs.replace(request, trace=trace)

        def answer(reply: Reply) -> None:
            now, waiting = self._clock.monotonic(), self._leader.proposer.waiting
            self._metrics.answered(operation, reply.status, now - arrived)
            if reply.status in OF_CALLERS or self._attempts.takes_accepted:
                self._attempts.answered(operation, call, reply.status)
            self._slow_requests.answered(
                operation, call.request, reply.status, arrived, now, waiting
            )
            if trace is not None:
                trace.end(reply.status)
            on_reply(reply)

        call = Call(self._node, self._clock.wall_ms, request, found, answer)
        try:
            call.request = request = _with_new_names(request)
            if found.route is None:
                call.no_route(found)
                return
            if not joined:
                check_own_name(request.caller.principal, request.caller.method)
                # Changes that came among others have the address of the whole request.
                call.request = request = self._access_checks.at_client_address(operation, request)
            version = version_of(request.headers, self._newest_version)
            call.tolerant = version >= TOLERANT
            if not found.route.always:
                refusal = self._node.refusal(ask_of(found.route, request.query))
                if refusal is not None:
                    raise refusal
            self._let_in(found.route, call)
        except LogbergError as error:
            call.refuse(error, request.headers.get("x-logberg-request-id"))
        except OSError as error:
            call.refuse(unreadable(error), request.headers.get("x-logberg-request-id"))

    def _let_in(self, route: Route, call: Call) -> None:
        """Put pseudonyms into a request, and carry it out. Raises LogbergError."""
        if self._access_checks.guard.is_public(route.name):
            self._carry_out(route, call)
            return

        def known(request: Request) -> None:
            call.request = request
            self._carry_out(route, call)

        try:
            self._people.with_pseudonyms(call.request, call.contained(known), self._refusing(call))
        except LogbergError as error:
            raise self._node.with_leader(error) from None

    def _carry_out(self, route: Route, call: Call) -> None:
        """Read the body, have the request judged, and answer it. Raises LogbergError."""
        if route.long_list:
            self._carry_out_in_steps(route, call)
            return
        if route.request is not None:
            call.message = self._people.message(call.body(route.request))
        self._access_checks.when_allowed(route, call, lambda: self._allowed(route, call))

    def _allowed(self, route: Route, call: Call) -> None:
        """Answer an allowed request; a change first gets pseudonyms. Raises LogbergError."""
        if not route.changes:
            self._answers.answer(route, call)
            return

        def named(message: Any) -> None:
            call.message = message
            self._answers.answer(route, call)

        self._people.give_missing(
            call.message,
            lambda: self._answers.decision(route, call),
            call.contained(named),
            self._refusing(call),
        )

    def _refusing(self, call: Call) -> Callable[[LogbergError], None]:
        """Return what refuses a request later."""
        request_id = call.request.headers.get("x-logberg-request-id")
        return lambda error: call.refuse(self._node.with_leader(error), request_id)

    def _carry_out_in_steps(self, route: Route, call: Call) -> None:
        """Decode a long request between others, and then submit its change. Raises LogbergError."""

        def work() -> Generator[None, None, None]:
            call.message = yield from call.long_body(route.request, route.long_list)
            self._access_checks.when_allowed(route, call, lambda: self._answers.answer(route, call))

        def contained() -> Generator[None, None, None]:
            try:
                yield from steps
            except LogbergError as error:
                call.refuse(error, call.request.headers.get("x-logberg-request-id"))

        steps = work()
        for _ in steps:
            run_in_slices(self._clock, contained(), lambda: None)
            return


def begin_trace(tracing: Tracing, route: Route, request: Request) -> RequestTrace | None:
    """Trace a change, or what its caller traces; nothing else, because brokers ask all the time."""
    headers = request.headers
    if not route.changes and "traceparent" not in headers:
        return None
    request_id = headers.get("x-logberg-request-id", "")
    return tracing.begin(request.method, route.path, headers, request_id)


def _with_new_names(request: Request) -> Request:
    """Return the request with new header names. Raises LogbergError if a header has two values."""
    if not has_old_names(request.headers):
        return request
    check_names(request.headers)
    return msgspec.structs.replace(request, headers=with_new_names(request.headers))
