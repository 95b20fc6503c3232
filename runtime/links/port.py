"""The port on which peers connect: how many connections it holds, and for whom.

Rule: peers never wait behind strangers. Connections from the addresses of configured peers have
their own places and slots (`runtime.sockets.admission`), apart from those of all other addresses.
An address proves nothing: a connection of either class is a stranger until its greeting is
accepted. If a class has no place left, its oldest connection that has not greeted is closed for the
newest.
"""

import asyncio
from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from runtime.clock import Clock
from runtime.links.connection import GREETING_DEADLINE_S
from runtime.loop.heap import HeapTrimmer
from runtime.sockets.admission import Admission, Slots
from runtime.sockets.binding import bind_tcp
from runtime.sockets.byte_budget import ByteBudget
from runtime.sockets.descriptors import divide, soft_limit
from runtime.sockets.listening import Arrival, Listener, OnRefused
from runtime.sockets.tls import PeerTls

TLS_HANDSHAKE_S = 2.0
QUORUM_STRANGERS = 256
"""The most connections that have not greeted, in each class. A process with few file descriptors
accepts fewer (`runtime.sockets.descriptors`)."""
STRANGERS_PER_ADDRESS_MAX = 64
SLOTS = 48
"""The most connections that greet or shake hands at the same time, in each class."""
SLOT_BYTES = 96 * 1024
SLOT_GRACE_S = 0.5


class QuorumPort:
    """Accepts connections on every address of a host. To be used on a running loop."""

    def __init__(
        self,
        accepted: Callable[[Arrival], asyncio.BaseProtocol],
        *,
        clock: Clock,
        on_refused: OnRefused,
        log: FilteringBoundLogger,
    ) -> None:
        """`accepted` returns the protocol of a new connection.

        `on_refused` is called with address and reason when a connection ends before that.
        """
        self._accepted = accepted
        self._clock = clock
        self._on_refused = on_refused
        self._log = log
        self._listeners: list[Listener] = []
        self._peer_addresses: dict[int, str] = {}
        most = min(QUORUM_STRANGERS, divide(soft_limit()).quorum_strangers)
        self.strangers = self._admission(most, min(most, STRANGERS_PER_ADDRESS_MAX))
        self.near_peers = self._admission(most, most)
        """Connections from the addresses of configured peers."""

    def listen(self, host: str, port: int, tls: PeerTls | None) -> None:
        """Begin to accept; port 0 takes a free one. Raises OSError that says what to do."""
        for sock in bind_tcp(host, port):
            self._listeners.append(
                Listener(
                    sock,
                    self._accepted,
                    admission=self._admission_of,
                    tls=None if tls is None else tls.server,
                    first_bytes_s=GREETING_DEADLINE_S,
                    handshake_s=TLS_HANDSHAKE_S,
                    on_refused=self._on_refused,
                    log=self._log,
                    preferred=True,
                )
            )

    @property
    def number(self) -> int:
        """The number of the port."""
        return self._listeners[0].port

    def set_tls(self, tls: PeerTls) -> None:
        """Use another context for connections that begin from now on."""
        for listener in self._listeners:
            listener.tls = tls.server

    def close(self) -> None:
        """Accept no more; connections that have no protocol yet end."""
        for listener in self._listeners:
            listener.close()

    # -- configured peers --------------------------------------------------------------------

    def expect(self, node_id: int, address: str) -> None:
        """Count connections from `address` as those of a configured peer."""
        self._peer_addresses[node_id] = address

    def expects(self, node_id: int) -> bool:
        """Tell whether this node is a configured peer."""
        return node_id in self._peer_addresses

    def forget(self, node_id: int) -> None:
        """The node is no longer a configured peer."""
        self._peer_addresses.pop(node_id, None)

    # -- own ---------------------------------------------------------------------------------

    def _admission(self, total: int, per_address: int) -> Admission:
        heap = HeapTrimmer(self._clock.call_later)
        budget = ByteBudget(SLOTS * SLOT_BYTES, heap.freed)
        return Admission(
            total,
            per_address,
            slots=Slots(SLOTS, SLOT_BYTES, budget, SLOT_GRACE_S),
            now=self._clock.monotonic,
            call_later=self._clock.call_later,
        )

    def _admission_of(self, address: str) -> Admission:
        near = address in self._peer_addresses.values()
        return self.near_peers if near else self.strangers
