"""The link between a simulated client and the controllers, in the states of `coordination.testing`.

Rule: a link acts on the client's own paths and requests only. The nemesis acts on the controllers.
So a case's cut and the nemesis' cut never undo each other.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from coordination.testing.proxy import Applied, LinkState
from runtime.http.requests import Caller, OnReply, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from tests.simulation.cases.guest_loop import GuestLoop

OnRequest = Callable[[], None]
RESET = Unreachable("the connection was reset (simulated)")
REFUSED = Unreachable("refused (simulated)", refused=True)


class LinkedRequest:
    """A request on a link: answered once, whatever the link does meanwhile."""

    def __init__(self, link: "SimulatedLink", on_reply: OnReply) -> None:
        self._link = link
        self._on_reply: OnReply | None = on_reply
        self.carried: Any = None
        """The request on the network."""

    def abandon(self) -> None:
        self._on_reply = None
        self._link.under_way.pop(self, None)
        if self.carried is not None:
            self.carried.abandon()

    def settle(self, answer: Reply | Unreachable) -> None:
        """Give the caller its answer, if it still waits."""
        on_reply = self._on_reply
        self.abandon()
        if on_reply is not None:
            on_reply(answer)

    def arrived(self, answer: Reply | Unreachable) -> None:
        """Take what the network brings: a reply passes the link, which may lose it."""
        if isinstance(answer, Unreachable):
            self.settle(answer)
        else:
            self._link.judge(self, answer)


class SimulatedLink:
    """`coordination.testing.proxy.Link` of one client; also its `Requester`."""

    def __init__(
        self,
        host: SimulatedHost,
        caller: Caller,
        controllers: list[int],
        loop: GuestLoop,
        on_request: OnRequest,
    ) -> None:
        """`caller`: whom the controllers see. `loop`: the tester's.

        `on_request` is called for each request of the client.
        """
        self._host = host
        self._controllers = controllers
        self._loop = loop
        self._on_request = on_request
        self._requests = host.requests(caller)
        self._state = LinkState.OPEN
        self._applied: Applied | None = None
        self.under_way: dict[LinkedRequest, None] = {}

    @property
    def state(self) -> LinkState:
        return self._state

    def put(self, state: LinkState) -> None:
        was, self._state = self._state, state
        self._applied = None
        ends = [self._host.node_id], self._controllers
        if state is LinkState.CUT and was is not LinkState.CUT:
            self._host.network.cut(*ends, hold=True)
        if was is LinkState.CUT and state is not LinkState.CUT:
            self._host.network.mend(*ends)
        if state is LinkState.REFUSED or was is LinkState.LOSING_REPLIES:
            for request in list(self.under_way):
                self._soon(request, RESET)

    def lose_replies_once(self, applied: Applied) -> None:
        self._applied = applied

    def connections(self) -> int:
        """Each request that is under way has a connection of its own."""
        return len(self.under_way)

    async def aclose(self) -> None:
        self.put(LinkState.REFUSED)

    def request(
        self, target: str, request: Request, on_reply: OnReply, deadline_s: float
    ) -> LinkedRequest:
        linked = LinkedRequest(self, on_reply)
        self.under_way[linked] = None
        self._on_request()
        if self._state is LinkState.REFUSED:
            self._soon(linked, REFUSED)
        else:
            linked.carried = self._requests.request(target, request, linked.arrived, deadline_s)
        return linked

    def judge(self, request: LinkedRequest, reply: Reply) -> None:
        """Carry a reply, or lose it. A lost one leaves its request waiting for a reset."""
        if self._applied is not None:
            self._loop.create_task(self._ask_first(self._applied, request, reply))
        elif self._state is not LinkState.LOSING_REPLIES:
            request.settle(reply)

    async def _ask_first(
        self, applied: Callable[[], Awaitable[object]], request: LinkedRequest, reply: Reply
    ) -> None:
        if await applied() and self._applied is applied:
            self.put(LinkState.LOSING_REPLIES)
        self._applied = None if self._state is LinkState.LOSING_REPLIES else self._applied
        if self._state is not LinkState.LOSING_REPLIES:
            request.settle(reply)

    def _soon(self, request: LinkedRequest, answer: Unreachable) -> None:
        self._host.process.schedule(0, lambda: request.settle(answer), "link")
