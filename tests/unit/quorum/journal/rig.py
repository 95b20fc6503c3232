"""One node's journal on a simulated disk, over as many incarnations as a test likes."""

import logging
from typing import Any

import structlog

from quorum.api import Voter
from quorum.journal import RaftJournal
from quorum.journal.manifest import JournalManifest
from quorum.journal.manifest_store import ManifestStore
from runtime.simulated.disk import SimulatedDisk
from runtime.simulated.disk_faults import DiskFaults
from runtime.simulated.platter import Platter
from runtime.simulated.process import Death, SimulatedProcess
from runtime.simulated.world import World

LOG = structlog.wrap_logger(
    structlog.PrintLogger(), wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL)
)


class Rig:
    """A platter, and the process that uses it just now."""

    def __init__(self, seed: int = 0, *, segment_bytes: int = 1 << 20, node_id: int = 1) -> None:
        self.world = World(seed)
        self.platter = Platter(self.world.random("platter"))
        self.faults = DiskFaults()
        self.segment_bytes = segment_bytes
        self.node_id = node_id
        self.failures: list[OSError] = []
        self.durable_calls = 0
        self._boot()

    def _boot(self) -> None:
        self.process = SimulatedProcess(self.world, self.node_id)
        self.disk = SimulatedDisk(self.process, self.platter, self.faults)
        self.disk.lock()

    def kill(self) -> None:
        """kill -9, and start again."""
        self.process.kill()
        self._boot()

    def lose_power(self) -> None:
        """Pull the plug, and start again."""
        self.process.kill(Death.POWER)
        self.platter.lose_power()
        self._boot()

    def stop(self, journal: RaftJournal) -> None:
        """Stop in order, and start again."""
        journal.close()
        self.disk.close()
        self.kill()

    def open(self, manifest: JournalManifest | None = None, **settings) -> RaftJournal:
        def durable() -> None:
            self.durable_calls += 1

        defaults: dict[str, Any] = {
            "cluster_id": "cluster-a",
            "node_id": self.node_id,
            "new_directory_id": bytes([self.node_id]) * 16,
            "segment_bytes": self.segment_bytes,
        }
        return RaftJournal.open(
            self.disk,
            manifest=manifest,
            on_durable=durable,
            on_failed=self.failures.append,
            log=LOG,
            **(defaults | settings),
        )

    def store(self) -> ManifestStore:
        return ManifestStore(self.disk, on_failed=self.failures.append, log=LOG)

    def settle(self, seconds: float = 60.0) -> None:
        """Let what is under way on the disk end."""
        self.world.run_for(seconds)

    def files(self) -> dict[str, bytes]:
        return self.platter.snapshot()

    def with_files(self, files: dict[str, bytes]) -> "Rig":
        """Another machine with these files."""
        other = Rig(0, segment_bytes=self.segment_bytes, node_id=self.node_id)
        other.platter.restore(files)
        return other


def command(index: int) -> bytes:
    return b"entry-%d" % index


def fill(journal: RaftJournal, first: int, last: int, term: int = 1) -> None:
    for index in range(first, last + 1):
        journal.add(command(index), index, term)


def entries(journal: RaftJournal) -> list[tuple[bytes, int, int]]:
    return list(journal[:])


def manifest_at(journal: RaftJournal, index: int, data: bytes = b"mark") -> JournalManifest:
    first, second = journal.entry(index - 1), journal.entry(index)
    assert first is not None
    assert second is not None
    return JournalManifest(
        cluster_id="cluster-a",
        first=first,
        second=second,
        mark_data=data,
        voters=(Voter(1, b"\x01" * 16, "localhost", 19091),),
        directory_id=journal.directory_id,
        journal_position=journal.durable_position,
    )
