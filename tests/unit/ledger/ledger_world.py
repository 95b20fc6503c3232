"""A ledger on a simulated disk, with kills and losses of power; and batches to put into it."""

import random
from hashlib import sha256

import msgspec
import structlog
from structlog.testing import CapturingLogger

from ledger.batch import Batch, BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.ledger import Accepted, Ledger
from ledger.segments import SEGMENT_BYTES
from runtime.simulated.disk import SimulatedDisk
from runtime.simulated.disk_faults import DiskFaults
from runtime.simulated.platter import Platter
from runtime.simulated.process import Death, SimulatedProcess
from runtime.simulated.world import World

CLUSTER = "4L6g3nShT-eMCtK--X86sw"


class Node:
    """A node's folder, which remains when a process ends."""

    def __init__(self, seed=1, cluster_id=CLUSTER, segment_bytes=SEGMENT_BYTES, node_id=1):
        self.world = World(seed)
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.segment_bytes = segment_bytes
        self.platter = Platter(random.Random(seed))
        self.faults = DiskFaults()
        self.process = None
        self.disk = None
        self.start()

    def start(self):
        """A new process; no ledger is opened yet."""
        if self.process is not None and self.process.alive:
            self.process.kill(Death.KILLED)
        self.process = SimulatedProcess(self.world, self.node_id)
        self.disk = SimulatedDisk(self.process, self.platter, self.faults)
        self.logger = CapturingLogger()
        self.log = structlog.wrap_logger(self.logger, processors=[])

    def lose_power(self):
        self.process.kill(Death.POWER)
        self.platter.lose_power()

    def open(self, mark=None):
        return Ledger.open(
            self.disk,
            self.cluster_id,
            synced_to=mark,
            segment_bytes=self.segment_bytes,
            log=self.log,
        )

    def reopen(self, mark=None):
        self.start()
        return self.open(mark)

    def events(self):
        """Names of what was logged, but for the opening of a ledger."""
        names = [call.kwargs["event"] for call in self.logger.calls]
        return [name for name in names if name != "ledger_opened"]

    def sync(self, ledger):
        """Sync and wait; returns the durable mark."""
        outcome = []
        mark = ledger.sync(outcome.append)
        self.settle()
        assert outcome == [None]
        return mark

    def warm_and_cold(self, ledger):
        """The ledger as it is, then as it is after a restart."""
        mark = self.sync(ledger)
        yield ledger
        yield self.reopen(mark)

    def settle(self):
        self.world.run_for(10.0)

    def files(self, folder="log"):
        return {
            name: bytes(inode.content)
            for name, inode in sorted(self.platter.names.items())
            if name.startswith(folder + "/")
        }


def records(count, tag=0, size=8):
    return msgspec.msgpack.encode([[1, 0, tag, i, b"x" * size] for i in range(count)])


def make_batch(mark, count=1, tag=0, size=8, epoch=None, timestamp_ms=None, **extra):
    """Return the batch that continues `mark`."""
    header = BatchHeader(
        base_offset=mark.log_end,
        count=count,
        epoch=max(mark.epoch, 1) if epoch is None else epoch,
        timestamp_ms=max(mark.timestamp_ms, 1_700_000_000_000) + 1
        if timestamp_ms is None
        else timestamp_ms,
        provenance=Provenance(
            principal="User:alice",
            auth_method="token",
            client_address="127.0.0.1",
            client_id="test",
            request_id=sha256(str(tag).encode()).digest()[:16],
            request_digest=sha256(str((tag, "digest")).encode()).digest(),
            operation="CreateTopics",
            reason=f"because {tag}",
        ),
        previous_hash=mark.head,
        **extra,
    )
    return seal(header, records(count, tag, size))


def make_batches(count, *, cluster_id=CLUSTER, mark=None, per_batch=3, size=8, epochs=None, tag=0):
    """Return a chained run of batches.

    `epochs` maps a batch's number to the epoch that begins there.
    """
    mark = mark or LogMark.beginning(cluster_id)
    made = []
    epoch = max(mark.epoch, 1)
    for i in range(count):
        epoch = (epochs or {}).get(i, epoch)
        batch = make_batch(mark, 1 + i % per_batch, tag + i, size, epoch=epoch)
        made.append(batch)
        mark = mark.after(batch)
    return made


def fill(ledger, batches):
    for batch in batches:
        outcome = ledger.accept(batch.header.epoch, batch)
        assert isinstance(outcome, Accepted), outcome
    return ledger


def marks_of(batches, cluster_id=CLUSTER):
    """Return the mark before each batch, and the one after the last."""
    mark = LogMark.beginning(cluster_id)
    found = [mark]
    for batch in batches:
        mark = mark.after(batch)
        found.append(mark)
    return found


def reseal(batch, records_bytes=None, **changes) -> Batch:
    """Return a forged batch: some fields changed, hash and checksum right again."""
    header = msgspec.structs.replace(batch.header, **changes)
    return seal(header, batch.records if records_bytes is None else records_bytes)
