"""Has each request judged before it is carried out, and its answer judged before it leaves.

Rules:

- The leader judges by its pending image, which has everything that is proposed. A refusal of the
  leader waits until a majority has confirmed it, as other refusals do: a replaced leader must not
  refuse by rules that its successor has changed.
- A standby judges what it answers by its own image. If the request names the offset that this image
  must have reached (`minOffset`), the standby waits for it first. It passes on what only the leader
  answers.
- A change is judged once more when it is decided
  (`controller.leader.requested_change.if_allowed`). Then its answer tells what was done.
- Every other answer is judged by the newest image at the moment when it leaves, also if it is an
  error. So a request that waited, and a route that was not judged before, tell nobody anything
  that the entries of that moment forbid. This happens in one place, whatever answers the route.
- A caller whose credentials count no more gets no answer: the server ends its connection
  (`runtime.sockets.judging`).
"""

from collections.abc import Callable, Generator
from typing import Any, Final

from controller.access.asker_rights import AskerRights, rights_of
from controller.access.guard import AccessGuard, Asker, RequestAccess
from controller.access.request_needs import RequestFacts
from controller.access.route_access import RouteAccess
from controller.http.attempt_noting import AttemptNoting
from controller.http.call import REQUEST_ID, Call, OnReply
from controller.http.degraded import Ask, ask_of
from controller.http.node_view import NodeView
from controller.http.queries import behind, whole_number
from controller.http.route import MIN_OFFSET, Route
from controller.leader.client_address import at_client_address
from controller.people.door import ON_BEHALF_OF, PeopleDoor
from metadata.acl_rules import Enforcement
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.pseudonyms import check_own_name
from runtime.clock import Clock
from runtime.http.requests import Reply, Request
from runtime.loop.slices import run_in_slices

_ELSEWHERE: Final = frozenset(
    {ErrorCode.NOT_CONTROLLER, ErrorCode.NO_QUORUM, ErrorCode.SHUTTING_DOWN}
)
"""The errors of answers that tell whom to ask, and nothing of the state."""
_DECIDED: Final = frozenset({Ask.CHANGE, Ask.ISR})
"""What is judged when it is decided. `transfer_leadership` is, too."""
_ERRORS_FROM: Final = 400
"""The lowest HTTP status of an error."""


class AccessChecks:
    """Judges the requests of one controller."""

    def __init__(
        self,
        guard: AccessGuard,
        node: NodeView,
        clock: Clock,
        attempts: AttemptNoting,
        people: PeopleDoor,
    ) -> None:
        self.guard = guard
        self._people = people
        self._attempts = attempts
        self._node = node
        self._clock = clock

    def when_allowed(self, route: Route, call: Call, then: Callable[[], None]) -> None:
        """Carry out a request, or refuse it. Raises LogbergError."""
        if self.guard.off or self.guard.is_public(route.name):
            then()
            return
        try:
            access = self._access_of(route, call)
        except LogbergError as error:
            asker = Asker(call.request.caller.principal, call.request.caller.address)
            self.guard.tell(route.name, asker, error)
            if (refused := self.guard.enforced(error)) is not None:
                raise refused from None
            then()
            return
        call.access = access
        if not access.needs_image:
            self._judge(call, access, self._node.replica.image, then)
            return
        if not self._node.storage.files.ready:
            raise LogbergError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                "this controller still loads its log, so it does not know who may do what",
            )

        def carry_out() -> None:
            call.on_reply = self._judged_when_answered(route, call, access, call.on_reply)
            then()

        pending, query = self._node.leader.proposer.pending, call.request.query
        if pending is not None:
            self._judge(call, access, pending.image, carry_out)
        elif ask_of(route, query) is not Ask.OTHER:
            carry_out()
        elif MIN_OFFSET in route.parameters and MIN_OFFSET.name in query:
            self._judge_from(whole_number(query, MIN_OFFSET.name, 0), call, access, carry_out)
        else:
            self._judge(call, access, self._node.replica.image, carry_out)

    def at_client_address(self, name: str, request: Request) -> Request:
        """Return a request at the address of the client whose request a broker forwards.

        Raises LogbergError for a caller that may name no client, whatever `authorization` says:
        otherwise the log would name an address that nobody has proved.
        """
        try:
            return at_client_address(request)
        except LogbergError as error:
            if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                asker = Asker(request.caller.principal, request.caller.address)
                self.guard.tell(name, asker, error, always=True)
            raise

    def refusal(
        self, name: str, access: RouteAccess | None, request: Request, message: Any
    ) -> LogbergError | None:
        """Judge a request that asks no route, by this node's image; None: it is allowed.

        `access` says what it needs; None: it declares nothing, and is refused.
        """
        if self.guard.off:
            return None
        try:
            request = self._known(request)
            asker = self._asker(request)
        except LogbergError as error:
            asker = Asker(request.caller.principal, request.caller.address)
            self.guard.tell(name, asker, error)
            refused = self.guard.enforced(error)
        else:
            facts = RequestFacts(asker.principal, {}, {}, message)
            judged = self.guard.declared(name, access, asker, facts)
            refused = judged.refusal(self._node.replica.image)
        if refused is not None:
            self._attempts.refused(name, request, message, asker, refused)
        return refused

    def rights(self, request: Request) -> AskerRights | None:
        """Return what the asker may do, by this node's image; None: everything.

        Raises LogbergError for a claim to ask for somebody that is not granted, for a login under
        a pseudonym, and while names can't be opened yet.
        """
        if self.guard.enforcement is not Enforcement.ON:
            # A claim that isn't granted is no reason to refuse then.
            return None
        asker = self._asker(self._known(request))
        return rights_of(self.guard, self._node.replica.image.acls, asker)

    def _known(self, request: Request) -> Request:
        """Put pseudonyms into a request that asks no route. Raises LogbergError."""
        check_own_name(request.caller.principal, request.caller.method)
        return self._people.known(request)

    def _access_of(self, route: Route, call: Call) -> RequestAccess:
        """Raises LogbergError for a claim to ask for somebody that is not granted."""
        request = call.request
        asker = self._asker(request)
        facts = RequestFacts(asker.principal, call.arguments, request.query, call.message)
        return self.guard.of(route.name, asker, facts)

    def _asker(self, request: Request) -> Asker:
        """Raises LogbergError for a claim to ask for somebody that is not granted."""
        caller = request.caller
        if caller.acted_as and request.headers.get(ON_BEHALF_OF):
            raise LogbergError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"{caller.principal} may not ask on behalf of others: only a broker with "
                "credentials of its own may",
                {"principal": caller.principal, "lacks": "credentials of a broker"},
            )
        principal = self._node.leader.changes.asks_for(request)
        return Asker(principal, caller.address, itself=principal == caller.principal)

    def _judge_from(
        self, offset: int, call: Call, access: RequestAccess, then: Callable[[], None]
    ) -> None:
        """Judge by an image of this node that has everything before an offset."""

        def reached(ok: bool) -> None:
            if not ok:
                raise behind(offset)
            self._judge(call, access, self._node.replica.image, then)

        self._node.replica.reads.at_least(offset, call.contained(reached))

    def _judge(
        self, call: Call, access: RequestAccess, image: MetadataImage, then: Callable[[], None]
    ) -> None:
        steps = access.steps(image)
        try:
            next(steps)
        except StopIteration as done:
            self._decided(call, access, done.value, then)
            return

        def judged(refused: LogbergError | None) -> None:
            self._decided(call, access, refused, then)

        def rest() -> Generator[None, None, None]:
            refused = yield from steps
            call.contained(judged)(refused)

        run_in_slices(self._clock, rest(), lambda: None)

    def _decided(
        self,
        call: Call,
        access: RequestAccess,
        refused: LogbergError | None,
        then: Callable[[], None],
    ) -> None:
        if refused is None:
            then()
            return
        request_id = call.request.headers.get(REQUEST_ID)
        if not access.needs_image or self._node.leader.proposer.pending is None:
            call.refuse(refused, request_id)
            return

        def confirmed(leads: bool) -> None:
            call.refuse(refused if leads else self._node.not_here(), request_id)

        self._node.replica.reads.linearizable(confirmed)

    def _judged_when_answered(
        self, route: Route, call: Call, access: RequestAccess, on_reply: OnReply
    ) -> OnReply:
        """Return what sends an answer if it may leave, and a refusal instead of it if not."""

        def answered(reply: Reply) -> None:
            refused = self._refused_when_answered(route, call, access, reply)
            if refused is None:
                on_reply(reply)
                return
            if reply.parts is not None:
                reply.parts.close()
            on_reply(call.refusal(refused, call.request.headers.get(REQUEST_ID)))

        return answered

    def _refused_when_answered(
        self, route: Route, call: Call, access: RequestAccess, reply: Reply
    ) -> LogbergError | None:
        """Return why an answer may not leave; None: it may."""
        if reply.status >= _ERRORS_FROM and call.refused_with in _ELSEWHERE:
            return None
        if access.was_allowed and _is_judged_when_decided(route):
            return None
        refused = access.refusal(self._node.replica.image)
        if refused is None:
            return None
        is_leaders = ask_of(route, call.request.query) is not Ask.OTHER
        if is_leaders and self._node.leader.proposer.pending is None:
            # The image may be old, and the leader's is not.
            return self._node.not_here()
        return refused


def _is_judged_when_decided(route: Route) -> bool:
    return ask_of(route, {}) in _DECIDED or route.name == "transfer_leadership"
