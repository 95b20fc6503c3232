"""I19: a broker that is fenced for its silence has stopped serving before.

Rule: this is `FencedNeverServes` of model/Leases.tla. The newest committed image that any
controller has says who is fenced, and the batch that fenced it says why. A process that it calls
fenced may not serve: not at the commit, and not after one of its own events. Its state is read here
without asking it, since to ask would make it fence itself.

A broker that is stopping serves until it is told that it may go, and is fenced shortly before. A
lease holds for clocks that run about equally fast, so nothing is judged while a clock runs fast or
slow, and for two sessions after that.

The judge reads a node's files beside its process: it meets no fault of the disk that the process
should meet, and it leaves no index in the process's ledger. A file that the fault injector damaged
may say nothing of a fencing; then that fencing is counted and not judged.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from broker_agent.states import BrokerState
from ledger.errors import LedgerError
from ledger.reader import LedgerReader
from metadata.codec import decode_records
from metadata.records import BrokerRegistrationChangeRecord, FencingChange

US = 1_000_000


class _Fencing(NamedTuple):
    """A broker was fenced for its silence."""

    broker_id: int
    broker_epoch: int
    leader_epoch: int
    """The epoch of the leader that fenced it."""


class BrokerLeases:
    """Compares who serves with who is fenced."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._offset = -1
        self._fenced: dict[int, int] = {}
        """Broker id → broker epoch of who is fenced in the newest image."""
        self._silent: dict[int, int] = {}
        """The same of those that were fenced for their silence."""
        self.counts: Counter[str] = Counter()

    def committed(self, controller: Any) -> None:
        """A controller has a committed image; it may be an old one."""
        image = controller.image
        if image.offset <= self._offset:
            return
        since, self._offset = self._offset, image.offset
        fenced = {b: one.broker_epoch for b, one in image.cluster.brokers.items() if one.fenced}
        self._silent = {b: e for b, e in self._silent.items() if fenced.get(b) == e}
        if fenced.items() <= self._fenced.items():
            self._fenced = fenced
            return
        self._fenced = fenced
        for broker_id, epoch, leader_epoch in self._fencings(controller, since):
            for incarnation in self._processes(broker_id):
                self._cluster.silent_brokers.fenced(incarnation, epoch, leader_epoch)
            if fenced.get(broker_id) == epoch:
                self.counts["fenced for silence"] += 1
                self._silent[broker_id] = epoch
                for incarnation in self._processes(broker_id):
                    self._check(incarnation, "is fenced")

    def _fencings(self, controller: Any, since: int) -> list[_Fencing]:
        """Return the fencings between an offset and a controller's image, as far as it has them."""
        if controller.ledger is None:
            return []
        running = self._cluster.running()
        node_id = next(n for n, each in running.items() if each is controller)
        host, fault_atlas = self._cluster.hosts[node_id], self._cluster.fault_atlas
        try:
            reader = LedgerReader(host.files())
            return list(_fenced_for_silence(reader, since, controller.image.offset))
        except LedgerError:
            if fault_atlas is None or node_id not in fault_atlas.victims:
                raise
            self.counts["not judged: the ledger is damaged"] += 1
            return []

    def after_event_of(self, incarnation: Any) -> None:
        """Something happened in a broker's process."""
        self._check(incarnation, "goes on")

    def _processes(self, broker_id: int) -> list[Any]:
        twins = self._cluster.duplicate_brokers.incarnations
        found = (self._cluster.brokers.get(broker_id), twins.get(broker_id))
        return [incarnation for incarnation in found if incarnation is not None]

    def _check(self, incarnation: Any, what: str) -> None:
        agent, process = incarnation.agent, incarnation.process
        if agent is None or not process.alive or process.paused:
            return
        if self._silent.get(incarnation.broker_id) != agent.broker_epoch:
            return
        status, lease = agent._status, agent._lease
        if not status.serving or lease.expired() or agent.state is BrokerState.STOPPING:
            return
        if clocks_differ(self._cluster):
            self.counts["not judged: clocks differ"] += 1
            return
        self._cluster.world.fail(
            f"I19: broker {incarnation.broker_id} {what} at offset {self._offset} and serves; "
            f"its lease is {lease.age_s():.3f} s old, of {lease.length_s:.3f}",
            process.node_id,
        )


def clocks_differ(cluster: Any) -> bool:
    """Whether a clock ran fast or slow within the last two sessions."""
    now = cluster.world.now_us
    hosts = (*cluster.hosts.values(), *cluster.broker_hosts.values())
    until = 2 * cluster.shape.session_s * US
    return any(
        host.machine.rate != 1.0
        or (host.machine.steady_since_us > 0 and now - host.machine.steady_since_us < until)
        for host in hosts
    )


def _fenced_for_silence(ledger: LedgerReader, since: int, end: int) -> Iterator[_Fencing]:
    """Yield each fencing for silence in a part of the log. Raises LedgerError."""
    for batch in ledger.batches(max(since, ledger.log_start), end):
        if not batch.header.provenance.reason.startswith("not heard from"):
            continue
        for record in decode_records(batch.records):
            if (
                isinstance(record, BrokerRegistrationChangeRecord)
                and record.fenced == FencingChange.FENCE
            ):
                yield _Fencing(record.broker_id, record.broker_epoch, batch.header.epoch)
