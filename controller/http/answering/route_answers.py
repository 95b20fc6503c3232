"""Takes an allowed call to what answers its route.

- A change goes to the leader, which decides it (`controller.http.change_routes`).
- A read is a function of the image, in one of the tables of reads, or in one of reads in steps.
- Every other route has an entry in a table of `Answers`, such as `log_answers`.
"""

import msgspec

from controller.http.bridge.answers import READS as BRIDGE_READS
from controller.http.call import Answers, Call
from controller.http.change_routes import CHANGES
from controller.http.clients.answers import READS as CLIENT_READS
from controller.http.clients.answers import READS_IN_STEPS as CLIENT_READS_IN_STEPS
from controller.http.clients.asked import Asked, ReadContext
from controller.http.coordination.answers import READS as COORDINATION_READS
from controller.http.declared.answers import READS as DECLARED_READS
from controller.http.head_keys import READS as HEAD_KEY_READS
from controller.http.node_view import NodeView
from controller.http.queries import Queries
from controller.http.replicas.answers import READS as REPLICA_READS
from controller.http.replicas.answers import READS_IN_STEPS as REPLICA_READS_IN_STEPS
from controller.http.route import Route
from controller.leader.requested_change import RequestedChange, if_allowed
from controller.people.door import PeopleDoor
from controller.result import Decide
from metadata.errors import LogbergError
from metadata.messages.parts import LongMessage

READS = {
    **BRIDGE_READS,
    **CLIENT_READS,
    **COORDINATION_READS,
    **DECLARED_READS,
    **HEAD_KEY_READS,
    **REPLICA_READS,
}
"""By the name of the route. `image_answers` has the other reads."""
READS_IN_STEPS = {**CLIENT_READS_IN_STEPS, **REPLICA_READS_IN_STEPS}


class RouteAnswers:
    """Answers calls that are allowed."""

    def __init__(
        self,
        node: NodeView,
        queries: Queries,
        context: ReadContext,
        people: PeopleDoor,
        others: Answers,
    ) -> None:
        """`others` answers the routes that are neither changes nor in the tables of reads."""
        self._node = node
        self._leader = node.leader
        self._queries = queries
        self._context = context
        self._people = people
        self._others = others

    def answer(self, route: Route, call: Call) -> None:
        """Call what answers a route. Raises LogbergError."""
        if route.changes:
            asked = Asked(call.request, call.arguments, call.message)
            self._change(call, CHANGES[route.name](self._leader, asked))
        elif route.name in READS:
            asked = Asked(call.request, call.arguments)
            read, context = READS[route.name], self._context
            self._queries.read(call.request, lambda view: read(view, asked, context), call.answer)
        elif route.name in READS_IN_STEPS:
            asked = Asked(call.request, call.arguments, shown=call.shown)
            steps, context = READS_IN_STEPS[route.name], self._context
            self._queries.read_in_steps(
                call.request, lambda view: steps(view, asked, context), call.answer_later
            )
        else:
            self._others[route.name](call)

    def decision(self, route: Route, call: Call) -> Decide:
        """Return the decision that a change asks for, to try it. Raises LogbergError."""
        asked = Asked(call.request, call.arguments, call.message)
        return if_allowed(CHANGES[route.name](self._leader, asked).decide, call.access)

    def _change(self, call: Call, change: RequestedChange) -> None:
        """Submit a change. If this controller doesn't lead, the answer says whom to ask."""

        def answer(
            outcome: msgspec.Struct | LongMessage | LogbergError, request_id: str | None
        ) -> None:
            if isinstance(outcome, LogbergError):
                outcome = self._node.with_leader(outcome)
            call.answer(outcome, request_id)

        def judging(decide: Decide) -> Decide:
            given = self._people.while_given(call.request, call.message, decide)
            return if_allowed(given, call.access)

        judged = change._replace(
            decide=judging(change.decide),
            undivided=change.undivided and judging(change.undivided),
        )
        self._leader.changes.submit(call.request, judged, answer)
