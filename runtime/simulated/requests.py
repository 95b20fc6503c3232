"""Simulated requests: `runtime.http.requests.Requester` over the simulated network.

Rule: the network can lose a request or its reply. The caller can't distinguish the two; it learns
only that its deadline passed. `refused` is true only if the request certainly had no effect.
"""

import errno
import zlib
from collections.abc import Callable
from functools import partial

import msgspec

from runtime.http.requests import Caller, Handler, OnReply, Reply, Request, Unreachable, whole
from runtime.simulated.network import Server, SimulatedNetwork
from runtime.simulated.process import Death, SimulatedProcess
from runtime.simulated.world import ScheduledEvent


class SimulatedServer:
    """A server of one process, under a URL."""

    def __init__(
        self, network: SimulatedNetwork, process: SimulatedProcess, url: str, handler: Handler
    ) -> None:
        present = network.servers.get(url)
        if present is not None and present.serving:
            raise OSError(errno.EADDRINUSE, f"{url} is in use (simulated)")
        self.process = process
        self.handler = handler
        self._stopped = False
        self._under_way: dict[int, Callable[[], None]] = {}
        self._accepted = 0
        network.servers[url] = self
        process.on_death(self._die)

    @property
    def serving(self) -> bool:
        """True if connections are accepted."""
        return self.process.alive and not self._stopped

    def stop(self) -> None:
        """Refuse connections from now on. Accepted requests are still answered."""
        self._stopped = True

    def begin(self, broken: Callable[[], None]) -> int:
        """Record a request. `broken` is called if the process is killed before `end`."""
        self._accepted += 1
        self._under_way[self._accepted] = broken
        return self._accepted

    def end(self, number: int) -> None:
        """Record that a request was answered."""
        del self._under_way[number]

    def _die(self, how: Death) -> None:
        under_way = list(self._under_way.values())
        self._under_way.clear()
        if how is Death.KILLED:
            for broken in under_way:
                broken()


class PendingSimulatedRequest:
    """A request that was sent."""

    def __init__(self, on_reply: OnReply) -> None:
        self.timer: ScheduledEvent | None = None
        self._on_reply: OnReply | None = on_reply

    def abandon(self) -> None:
        self._on_reply = None
        if self.timer is not None:
            self.timer.cancel()

    def settle(self, outcome: Reply | Unreachable) -> None:
        """Answer, unless that was done or the request was abandoned."""
        on_reply = self._on_reply
        self.abandon()
        if on_reply is not None:
            on_reply(outcome)


class SimulatedRequests:
    """Sends the requests of one process."""

    def __init__(
        self, network: SimulatedNetwork, process: SimulatedProcess, caller: Caller | None = None
    ) -> None:
        """`caller`: the caller that servers see; None: the one that the request names."""
        self._network = network
        self._process = process
        self._caller = caller
        self._random = network.world.random(f"requests/{process.node_id}")

    def request(
        self, target: str, request: Request, on_reply: OnReply, deadline_s: float
    ) -> PendingSimulatedRequest:
        pending = PendingSimulatedRequest(on_reply)
        if self._caller is not None:
            request = msgspec.structs.replace(request, caller=self._caller)
        if not self._process.alive:
            pending.abandon()
            return pending
        late = partial(pending.settle, Unreachable(f"no answer within {deadline_s} s"))
        pending.timer = self._process.clock.call_later(deadline_s, late)
        server = self._network.servers.get(target)
        if server is None:
            refused = partial(pending.settle, Unreachable("refused (simulated)", refused=True))
            self._process.schedule(0, refused, "refused")
            return pending
        path = self._network.path(self._process.node_id, server.process.node_id)
        arrive = partial(self._arrive, target, request, pending)
        if not self._lost(path.profile.loss):
            path.carry(len(request.body), arrive, None, "request")
            if path.profile.duplicate and self._random.random() < path.profile.duplicate:
                path.carry(len(request.body), arrive, None, "request-twice")
        return pending

    def _arrive(self, target: str, request: Request, pending: PendingSimulatedRequest) -> None:
        """A request arrives at the server's machine. Its operating system may refuse it."""
        server = self._network.servers[target]
        if server.serving:
            serve = partial(self._serve, server, request, pending)
            server.process.schedule(0, serve, "serve")
        elif server.process.machine.powered:
            self._answer(server, Unreachable("refused (simulated)", refused=True), pending)

    def _serve(self, server: Server, request: Request, pending: PendingSimulatedRequest) -> None:
        world = self._process.world
        world.note("serve", server.process.node_id, zlib.crc32(request.body))
        reset = Unreachable("the connection was reset (simulated)")
        number = server.begin(partial(self._answer, server, reset, pending))
        answered = False

        def reply(answer: Reply) -> None:
            nonlocal answered
            assert not answered, "a request is answered once"
            answered = True
            if server.process.alive:
                server.end(number)
                self._answer(server, whole(answer), pending)

        server.handler(request, reply)

    def _answer(
        self,
        server: Server,
        answer: Reply | Unreachable,
        pending: PendingSimulatedRequest,
    ) -> None:
        path = self._network.path(server.process.node_id, self._process.node_id)
        if self._lost(path.profile.loss):
            return
        size = len(answer.body) if isinstance(answer, Reply) else 0
        path.carry(size, partial(pending.settle, answer), self._process, "reply")

    def _lost(self, loss: float) -> bool:
        return bool(loss) and self._random.random() < loss
