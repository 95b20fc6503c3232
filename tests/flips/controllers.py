"""The folder of a controller of a simulated cluster with brokers and administrators.

Rule: the files are the product's own, larger than the scripted ones and not made for the purpose.
"""

from functools import cache
from typing import Any, NamedTuple

from ledger.chain import LogMark
from ledger.reader import LedgerReader
from quorum.journal.manifest import FILE as MANIFEST
from quorum.journal.manifest import decode_manifest
from tests.flips.journals import JournalCase
from tests.flips.ledgers import LedgerCase
from tests.flips.memory import MemoryDisk
from tests.simulation.cluster import CLUSTER_ID, Cluster
from tests.simulation.cluster_shape import Shape

_RUN_S = 12.0
_MOST_S = 120.0
_NODE = 1


class Run(NamedTuple):
    """What was left when all processes were killed at one moment."""

    files: dict[str, bytes]
    synced: int
    """Of the journal."""
    segment_bytes: int


@cache
def run(seed: int = 1) -> Run:
    """Run a cluster until the controller has cut its journal at a manifest."""
    shape = Shape()
    cluster = Cluster(seed, shape)
    cluster.start_all()
    cluster.world.run_for(_RUN_S)
    while MANIFEST not in (files := cluster.hosts[_NODE].platter.snapshot()):
        assert cluster.world.now_us < _MOST_S * 1_000_000, "no manifest was written"
        cluster.world.run_for(1.0)
    controller: Any = cluster.controllers[_NODE]
    return Run(files, controller.quorum.context.journal.durable_position, shape.segment_bytes)


def simulated_journal(seed: int = 1) -> JournalCase:
    """The journal of that controller, killed."""
    found = run(seed)
    files = {f: d for f, d in found.files.items() if f.startswith("journal/") or f == MANIFEST}
    segments = [name for name in files if name.endswith(".wal")]
    return JournalCase(
        "journal", files, segments, synced=found.synced, cluster_id=CLUSTER_ID, node_id=_NODE
    )


def simulated_ledger(seed: int = 1) -> LedgerCase:
    """The ledger of that controller, synced to the manifest's mark."""
    found = run(seed)
    files = {f: d for f, d in found.files.items() if f.startswith(("log/", "index/"))}
    mark = LogMark.decode(decode_manifest(found.files[MANIFEST]).mark_data)
    batches = list(LedgerReader(MemoryDisk(files)).batches())
    return LedgerCase(
        "ledger",
        files,
        list(files),
        batches,
        mark,
        segment_bytes=found.segment_bytes,
        cluster_id=CLUSTER_ID,
    )
