"""Whether several controllers' folders tell one history.

Rule: verified each on its own first (frames, checksums, chain, offsets, epochs), then held against
each other at the shortest one's end: there the chain hashes must be equal, which makes everything
before equal too. Nodes that stopped at different moments are not different.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from audit.places.folder import LocalTree, open_reader
from audit.places.tree_disk import TreeDisk
from ledger.chain import LogMark
from ledger.verify import VerifyReport, verify_ledger


class NodeReport(msgspec.Struct, frozen=True):
    """One folder."""

    folder: str
    report: VerifyReport


class Agreement(msgspec.Struct, frozen=True):
    """All folders."""

    nodes: tuple[NodeReport, ...]
    common_offset: int
    """The highest offset that all hold."""
    problem: str
    """Why they disagree, naming folder and offset; empty when they don't."""

    @property
    def ok(self) -> bool:
        """Every folder is sound, and they agree."""
        return not self.problem and all(node.report.ok for node in self.nodes)


def verify_folder(
    folder: Path,
    synced_to: LogMark | None,
    on_progress: Callable[[int, int], None] | None = None,
) -> NodeReport:
    """Verify one node's ledger; `synced_to` is its manifest's mark, where one is known.

    Raises NoLogError, LedgerError, OSError.
    """
    report = verify_ledger(
        TreeDisk(LocalTree(folder)), synced_to=synced_to, live=True, on_progress=on_progress
    )
    return NodeReport(str(folder), report)


def agree(
    folders: Mapping[Path, LogMark | None],
    on_progress: Callable[[int, int], None] | None = None,
) -> Agreement:
    """Verify the folders (each with its synced mark) and hold them against each other."""
    nodes = tuple(verify_folder(folder, mark, on_progress) for folder, mark in folders.items())
    sound = [node for node in nodes if node.report.ok]
    if len(sound) < 2:
        return Agreement(nodes, sound[0].report.log_end if sound else 0, "")
    common = min(node.report.log_end for node in sound)
    marks = [(node, _mark_at(Path(node.folder), common)) for node in sound]
    first, expected = marks[0]
    for node, mark in marks[1:]:
        if node.report.cluster_id != first.report.cluster_id:
            problem = f"{node.folder} is of cluster {node.report.cluster_id}, not the same one"
            return Agreement(nodes, common, problem)
        if mark != expected:
            problem = (
                f"{node.folder} and {first.folder} differ before offset {common}; "
                f"chain hashes {mark[:8].hex()}… and {expected[:8].hex()}…"
            )
            return Agreement(nodes, common, problem)
    return Agreement(nodes, common, "")


def _mark_at(folder: Path, offset: int) -> bytes:
    """Return the chain hash of the log's first `offset` records."""
    reader = open_reader(folder)
    head = LogMark.beginning(reader.cluster_id).head
    for batch in reader.batches(max(reader.log_start, offset - 1), offset):
        head = batch.hash
    return head
