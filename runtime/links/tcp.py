"""Links between peers over TCP, with TLS where configured.

Rule: two nodes have one link, and one of them decides which connection it is. Both nodes dial, so
each learns within milliseconds that the other's process is gone. The node with the higher id opens
the link (`connection`) by this rule:

- there is no link yet: the first connection with two accepted greetings becomes the link;
- there is a link, but the peer's process is not the one of that link, or the peer says that the
  link has ended on its side: the new connection replaces it;
- otherwise the new connection is refused.

The node with the lower id follows that decision. Both nodes redial a broken link at once. So a node
sees a killed peer as RESET and then, within milliseconds, as REFUSED. Other dials back off from
20 ms to 500 ms with jitter. So does the redial of a link that ended with a goodbye, or that broke
soon after it opened.

The handler identifies peers by their greeting and certificate, never by their address. The node
dials the peers that `set_peers` names. It may also accept a peer that `set_peers` doesn't name. If
a later `set_peers` leaves a peer out, the peer's link is closed. After `stop` the handler is not
called any more.

`port` limits the connections that have not greeted.
"""

import asyncio
import math
import secrets
from collections import Counter, deque
from collections.abc import Callable, Generator
from functools import partial

from structlog.typing import FilteringBoundLogger

from runtime.clock import Clock, Timer
from runtime.defects import OnDefect, stop_the_process
from runtime.links.connection import DUPLICATE, ConnectionState, LinkConnection
from runtime.links.dialling import DialFailedError, dial
from runtime.links.frames import ENDED_BYTES, GREETING_BYTES_MAX, Hello
from runtime.links.interface import FRAME_BYTES_MAX, LinkEnd, LinkHandler, Peer
from runtime.links.port import TLS_HANDSHAKE_S, QuorumPort
from runtime.randomness import Random
from runtime.sockets.admission import Admission
from runtime.sockets.credentials import PeerCertificate
from runtime.sockets.listening import Arrival
from runtime.sockets.refusals import HANDSHAKE, LINK, Refusals
from runtime.sockets.tls import PeerTls, trusts_others

BACK_OFF_MIN_S = 0.02
BACK_OFF_MAX_S = 0.5
ATTEMPTS_AFTER_RESET = -4
"""The back-off after a broken link begins at 20 ms / 16. When a process is killed, its connections
end before its listening socket. A dial in between succeeds, and must be repeated soon."""
LASTED_S = 0.1
"""A link that broke sooner is redialled with back-off. Otherwise two nodes could dial each other in
a busy loop."""
DIAL_S = 1.0
SEND_QUEUE_BYTES_MAX = 64 * 1024 * 1024
VERIFY_GAP_S = 1.0
VERIFIED_ANEW = "whom this node trusts has changed: the link is opened and verified again"


class _Target:
    """A peer to dial."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.attempts = 0
        self.timer: Timer | None = None
        self.task: asyncio.Task[None] | None = None
        self.connection: LinkConnection | None = None

    def is_busy(self) -> bool:
        """Tell whether a dial is under way or scheduled."""
        return not (self.timer is None and self.task is None and self.connection is None)

    def give_up(self) -> None:
        """End the dial that is under way or scheduled."""
        if self.timer is not None:
            self.timer.cancel()
        if self.task is not None:
            self.task.cancel()
        connection, self.timer, self.task, self.connection = self.connection, None, None, None
        if connection is not None:
            connection.close("a link came up meanwhile")


class TcpLinks:
    """`runtime.links.interface.PeerLinks` over TCP. To be used on a running loop."""

    def __init__(
        self,
        self_id: int,
        host: str,
        port: int,
        *,
        clock: Clock,
        random: Random,
        log: FilteringBoundLogger,
        tls: PeerTls | None = None,
        send_queue_bytes_max: int = SEND_QUEUE_BYTES_MAX,
        on_defect: OnDefect = stop_the_process,
        refusals: Refusals | None = None,
        certificate_problem: Callable[[PeerCertificate], str] = lambda _certificate: "",
    ) -> None:
        """`refusals` may be shared with other listeners of the process.

        `certificate_problem` returns why a verified certificate is refused; empty: it is not.
        """
        self.self_id = self_id
        self.clock = clock
        self.defect = on_defect
        # Not from `random`: a process that restarts with the same seed must get another number.
        self.instance = secrets.token_bytes(8)
        self.counters: Counter[str] = Counter()
        """For metrics: frames_sent, frames_received, frames_dropped, dials, dials_failed,
        links_opened, links_ended, links_rejected."""
        self._host, self._port = host, port
        self._random = random
        self._log = log
        self.refusals = refusals if refusals is not None else Refusals(log, clock.call_later)
        self._tls = tls
        self._certificate_problem = certificate_problem
        self._queue_max = send_queue_bytes_max
        self._handler: LinkHandler | None = None
        self._quorum_port = QuorumPort(
            self._accepted, clock=clock, on_refused=self._refused_early, log=log
        )
        self._targets: dict[int, _Target] = {}
        self._links: dict[int, LinkConnection] = {}
        self._ended: dict[int, deque[bytes]] = {}
        self._connections: set[LinkConnection] = set()
        self._dials: set[asyncio.Task[None]] = set()
        self._stopped = False

    # -- PeerLinks ---------------------------------------------------------------------------

    def start(self, handler: LinkHandler) -> None:
        self._handler = handler
        self._quorum_port.listen(self._host, self._port, self._tls)
        for target in self._targets.values():
            self._dial_in(target, 0.0)

    def set_peers(self, peers: tuple[Peer, ...]) -> None:
        wanted = {peer.node_id: peer for peer in peers if peer.node_id != self.self_id}
        for node_id in sorted(set(self._targets) - set(wanted)):
            self._targets.pop(node_id).give_up()
            self._quorum_port.forget(node_id)
            if node_id in self._links:
                self._links[node_id].close("no longer a peer")
        for node_id, peer in wanted.items():
            known = self._targets.get(node_id)
            if known is not None and known.peer == peer:
                continue
            if known is not None:
                known.give_up()
            self._targets[node_id] = _Target(peer)
            self._quorum_port.expect(node_id, peer.host.strip("[]"))
            if self._handler is not None and node_id not in self._links:
                self._dial_in(self._targets[node_id], 0.0)

    def send(self, node_id: int, frame: bytes) -> bool:
        assert 0 < len(frame) <= FRAME_BYTES_MAX, f"a frame of {len(frame)} bytes"
        connection = self._links.get(node_id)
        if connection is None or not connection.send(frame, self._queue_max):
            self.counters["frames_dropped"] += 1
            return False
        self.counters["frames_sent"] += 1
        return True

    def stop(self) -> None:
        self._stopped = True
        self._quorum_port.close()
        for target in self._targets.values():
            target.give_up()
        for connection in list(self._connections):
            connection.close("stopped")

    # -- beyond the interface ----------------------------------------------------------------

    @property
    def port(self) -> int:
        """The number of the port; the system chose it if 0 was given."""
        return self._quorum_port.number

    @property
    def strangers(self) -> Admission:
        """The places of connections from addresses that are not those of configured peers."""
        return self._quorum_port.strangers

    @property
    def near_peers(self) -> Admission:
        """The places of connections from the addresses of configured peers."""
        return self._quorum_port.near_peers

    def set_tls(self, tls: PeerTls) -> None:
        """Use other contexts for connections that begin from now on.

        Open links stay, unless the new contexts trust other authorities. Then the links are closed
        one after another, opened and verified again. One after another, so that a leader keeps its
        majority.
        """
        assert self._tls is not None, "links without TLS do not take it up while they run"
        trust_changed = trusts_others(self._tls.server, tls.server)
        self._tls = tls
        self._quorum_port.set_tls(tls)
        for turn, connection in enumerate(self._links.values()):
            if trust_changed:
                self.clock.call_later(turn * VERIFY_GAP_S, partial(connection.close, VERIFIED_ANEW))

    def judging(self) -> Generator[None, None, int]:
        """Close links whose peer's certificate is refused now; return how many. In steps."""
        ended = 0
        for connection in list(self._links.values()):
            if problem := self._problem(connection):
                connection.close(problem)
                ended += 1
            yield
        return ended

    def _problem(self, connection: LinkConnection) -> str:
        certificate = connection.certificate
        return "" if certificate is None else self._certificate_problem(certificate)

    # -- dialling ----------------------------------------------------------------------------

    def _dial_in(self, target: _Target, delay_s: float) -> None:
        if self._stopped or target.is_busy() or target.peer.node_id in self._links:
            return
        target.timer = self.clock.call_later(delay_s, lambda: self._dial_now(target))

    def _dial_now(self, target: _Target) -> None:
        self.counters["dials"] += 1
        target.timer = None
        target.task = asyncio.get_running_loop().create_task(self._dial(target))
        self._dials.add(target.task)
        target.task.add_done_callback(self._dials.discard)

    async def _dial(self, target: _Target) -> None:
        peer = target.peer
        try:
            sock = await dial(peer.host, peer.port, DIAL_S)
        except DialFailedError as failure:
            target.task = None
            self._dial_failed(target, failure.end, str(failure))
            return
        if self._quorum_port.expects(peer.node_id):
            # The host may be a name. This is the address that it stands for now.
            self._quorum_port.expect(peer.node_id, str(sock.getpeername()[0]))
        connection = LinkConnection(
            self, secrets.token_bytes(8), peer.node_id, f"{peer.host}:{peer.port}"
        )
        target.connection, target.task = connection, None
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: connection,
                sock=sock,
                ssl=None if self._tls is None else self._tls.client,
                server_hostname=None if self._tls is None else peer.host,
                ssl_handshake_timeout=None if self._tls is None else TLS_HANDSHAKE_S,
            )
        except OSError as error:
            # The TLS handshake failed. asyncio has not told the connection, which is not made yet.
            connection.connection_lost(error)

    def _dial_failed(self, target: _Target, end: LinkEnd, why: str) -> None:
        """Dial again later. Tell the handler if the failure says something about the peer."""
        node_id = target.peer.node_id
        self.counters["dials_failed"] += 1
        self._back_off(target)
        self._log.debug("link_dial_failed", peer=node_id, end=end.value, error=why)
        told = end in {LinkEnd.REFUSED, LinkEnd.UNREACHABLE}
        if told and node_id not in self._links and not self._stopped:
            self._the_handler().on_link_down(node_id, end)

    def _back_off(self, target: _Target) -> None:
        longest = min(BACK_OFF_MAX_S, BACK_OFF_MIN_S * math.pow(2, min(target.attempts, 10)))
        target.attempts += 1
        self._dial_in(target, longest * self._random.uniform(0.5, 1.0))

    # -- Owner, for the connections ----------------------------------------------------------

    def made(self, connection: LinkConnection) -> None:
        self._connections.add(connection)

    def hello_for(self, connection: LinkConnection) -> Hello:
        greeting = self._the_handler().greeting()
        assert len(greeting) <= GREETING_BYTES_MAX
        assert connection.peer is not None
        ended = b"".join(self._ended.get(connection.peer, ())).ljust(ENDED_BYTES, b"\0")
        return Hello(self.instance, connection.link, ended, greeting)

    def judged(self, connection: LinkConnection, greeting: bytes) -> int | str:
        judged = self._the_handler().judge(connection.dialled, greeting, connection.certified)
        if isinstance(judged, str):
            return judged
        if problem := self._problem(connection):
            return problem
        if connection.dialled not in {None, judged}:
            return f"node {judged} answered where node {connection.dialled} was expected"
        if judged == self.self_id:
            return f"two nodes have the id {judged}"
        return judged

    def may_open(self, connection: LinkConnection) -> bool:
        assert connection.peer is not None
        assert connection.hello is not None
        current = self._links.get(connection.peer)
        if current is None:
            return True
        assert current.hello is not None
        is_another_process = current.hello.instance != connection.hello.instance
        return is_another_process or connection.hello.says_ended(current.link)

    def opened(self, connection: LinkConnection) -> None:
        node_id = connection.peer
        assert node_id is not None
        if connection.arrival is not None:
            connection.arrival.left()
        if node_id in self._links:
            self._links[node_id].replace(LinkEnd.RESET)
            if connection.state is ConnectionState.ENDED:
                return  # the handler stopped us
        self._links[node_id] = connection
        self.counters["links_opened"] += 1
        target = self._targets.get(node_id)
        if target is not None:
            target.attempts = 0
            if target.connection is connection:
                target.connection = None
            target.give_up()
        self._log.info("link_up", peer=node_id, address=connection.address)
        self._the_handler().on_link_up(node_id)

    def arrived(self, connection: LinkConnection, frame: bytes) -> None:
        self.counters["frames_received"] += 1
        assert connection.peer is not None
        self._the_handler().on_frame(connection.peer, frame)

    def ended(self, connection: LinkConnection, end: LinkEnd, why: str) -> None:
        self._connections.discard(connection)
        was_open = connection.state_before is ConnectionState.OPEN
        if end is LinkEnd.REJECTED and not why.endswith(DUPLICATE):
            self._count_rejected(connection, why)
        if connection.hello is not None:
            self._remember_ended(connection)
        if was_open:
            self._link_ended(connection, end, why)
        elif connection.arrival is not None:
            connection.arrival.left()
        else:
            assert connection.dialled is not None
            target = self._targets.get(connection.dialled)
            if target is not None and target.connection is connection:
                target.connection = None
                self._dial_failed(target, end, why)

    # -- own ---------------------------------------------------------------------------------

    def _the_handler(self) -> LinkHandler:
        assert self._handler is not None
        return self._handler

    def _accepted(self, arrival: Arrival) -> asyncio.BaseProtocol:
        return LinkConnection(self, None, None, arrival.address, arrival)

    def _refused_early(self, address: str, why: str) -> None:
        self.counters["handshakes_failed"] += 1
        self.refusals.refused(HANDSHAKE, address=address, error=why, door="quorum")

    def _remember_ended(self, connection: LinkConnection) -> None:
        assert connection.peer is not None
        recent = self._ended.setdefault(connection.peer, deque(maxlen=ENDED_BYTES // 8))
        recent.append(connection.link)

    def _link_ended(self, connection: LinkConnection, end: LinkEnd, why: str) -> None:
        node_id = connection.peer
        assert node_id is not None
        if self._links.get(node_id) is connection:
            del self._links[node_id]
        self.counters["links_ended"] += 1
        if self._stopped:
            return
        self._log.info("link_down", peer=node_id, end=end.value, reason=why)
        target = self._targets.get(node_id)
        if target is not None:
            lasted = self.clock.monotonic() - connection.opened_at >= LASTED_S
            if end is LinkEnd.RESET and lasted:
                target.attempts = ATTEMPTS_AFTER_RESET
                self._dial_in(target, 0.0)
            else:
                self._back_off(target)
        self._the_handler().on_link_down(node_id, end)

    def _count_rejected(self, connection: LinkConnection, why: str) -> None:
        self.counters["links_rejected"] += 1
        peer = "unknown" if connection.peer is None else str(connection.peer)
        self.refusals.refused(LINK, address=connection.address, peer=peer, reason=why)
