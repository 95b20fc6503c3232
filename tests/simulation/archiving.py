"""The archive of a simulated cluster: its faults, and the invariant of what lies in it.

Invariant I25: a segment that left a node's `log/` and has a receipt there is in the archive, sound
from its first byte to its last; and from offset 0 on, each offset is in the archive or on some
node. What is read back is what the log holds.

Rule: what is looked at is what platters and archive hold, and not what nodes believe.
"""

import re
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

from ledger.batch import parse
from ledger.checker import SegmentChecker
from ledger.errors import HistoryMissingError, LedgerError, SegmentAwayError
from ledger.receipts import RECEIPTS_FOLDER, Receipt
from ledger.segments import ARCHIVE_FOLDER, LOG_FOLDER, segment_name
from runtime.simulated.platter import Inode
from runtime.simulated.world import Process
from tests.simulation.cluster import CLUSTER_ID, Cluster

_SEGMENT = re.compile(rf"{LOG_FOLDER}/([0-9]{{20}})\.log")
_GAP_S = (0.1, 1.5)
_LENGTH_S = (0.1, 3.0)
ACTS = ("gone", "refuses", "slow", "silent", "flips", "shortens", "forgets", "mangles")
_READ_EVERY_S = 0.25
_PATIENCE_S = 60.0
_KILLED = 0.3
"""Of the nodes that have just written a segment into the archive, so many die soon."""


class ArchiveFaults:
    """Switches the archive's faults, and ends nodes between a copy and the removal."""

    def __init__(self, cluster: Cluster) -> None:
        assert cluster.archive is not None
        self._cluster = cluster
        self._archive = cluster.archive
        self._dice = cluster.world.random("archive's faults")
        self._archive.on_written = self._written
        self.met: Counter[str] = Counter()
        self._ended = False

    def start(self) -> None:
        """Begin."""
        self._cluster.later(self._dice.uniform(*_GAP_S), self._strike)

    def end(self) -> None:
        """Heal the archive, for good."""
        self._ended = True
        self._archive.heal()
        self._repair()

    def _strike(self) -> None:
        if self._ended:
            return
        act = self._dice.choice(ACTS)
        self.met[act] += 1
        setattr(self._archive, act, True)
        self._cluster.later(self._dice.uniform(*_LENGTH_S), self._pass)

    def _pass(self) -> None:
        self._archive.heal()
        self._repair()
        if not self._ended:
            self.start()

    def _repair(self) -> None:
        """Do what the runbook says of a damaged copy: replace it from a node that has it."""
        for name, content in list(self._archive.mangled.items()):
            for host in self._cluster.hosts.values():
                inode = host.platter.names.get(f"{LOG_FOLDER}/{name}")
                if inode is not None and bytes(inode.content)[: len(content)] == content:
                    self.met["a mangled copy is replaced"] += 1
                    self._archive.repair(name)
                    break

    def _written(self, _name: str) -> None:
        if self._ended or self._dice.random() >= _KILLED:
            return
        node_id = self._dice.choice(list(self._cluster.hosts))
        self._cluster.later(self._dice.uniform(0.0, 0.03), lambda: self._end(node_id))

    def _end(self, node_id: int) -> None:
        host = self._cluster.hosts[node_id]
        if self._ended or not host.running:
            return
        self.met["a node dies behind a copy"] += 1
        if self._dice.random() < 0.5:
            host.kill()
        else:
            host.lose_power()
        self._cluster.later(0.5, lambda: self._start(node_id))

    def _start(self, node_id: int) -> None:
        if not self._cluster.hosts[node_id].running:
            self._cluster.start(node_id)


class ArchiveInvariant:
    """I25, looked at after every event."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._here: dict[int, tuple[Process, set[int]]] = {}
        """By node: its process, and the base offsets that were in its `log/` after an event."""
        self._sound: dict[int, tuple[bytes, int]] = {}
        """By base offset: the archive's content that was verified, and the offset of its end."""
        self.removed = 0
        cluster.world.after_event(self.after_event)

    def after_event(self, process: Process | None) -> None:
        if process is None or process.node_id not in self._cluster.hosts:
            return
        node_id = process.node_id
        here = self._bases(node_id)
        seen, before = self._here.get(node_id, (process, here))
        self._here[node_id] = (process, here)
        if seen is not process:
            return  # a loss of power took names that were not synced
        for base in before - here:
            if here and base < max(here):
                self._removed(node_id, base)

    def _bases(self, node_id: int) -> set[int]:
        names = self._cluster.hosts[node_id].platter.names
        return {int(found[1]) for name in names if (found := _SEGMENT.fullmatch(name))}

    def _removed(self, node_id: int, base: int) -> None:
        receipt = f"{RECEIPTS_FOLDER}/{base:020d}.receipt"
        # A catch-up replaces segments, too; it writes no receipt.
        if receipt in self._cluster.hosts[node_id].platter.names:
            if self._end_in_archive(base) is None:
                reason = f"I25: segment {base} left node {node_id}, and the archive has none"
                self._cluster.world.fail(reason, node_id)
                return
            self.removed += 1
        reached = self.reached()
        if reached <= base:
            reason = f"I25: offset {reached} is neither in the archive nor on any node"
            self._cluster.world.fail(reason, node_id)

    def reached(self) -> int:
        """Return the first offset that is neither in the archive nor in a node's closed segment."""
        offset = 0
        while True:
            end = self._end_in_archive(offset)
            if end is None:
                end = self._end_on_a_node(offset)
            if end is None:
                return offset
            offset = end

    def _end_on_a_node(self, base: int) -> int | None:
        for host in self._cluster.hosts.values():
            inode = host.platter.names.get(f"{LOG_FOLDER}/{segment_name(base)}")
            if inode is not None:
                checker = SegmentChecker(CLUSTER_ID, base)
                with suppress(LedgerError):
                    # What is sound before the damage counts.
                    checker.feed(bytes(inode.content))
                if checker.batches:
                    return checker.mark.log_end
        return None

    def _end_in_archive(self, base: int) -> int | None:
        assert self._cluster.archive is not None
        content = self._cluster.archive.files.get(segment_name(base))
        if content is None:
            return None
        known = self._sound.get(base)
        if known is not None:
            if known[0] is not content and known[0] != content:
                self._cluster.world.fail(f"I25: segment {base} in the archive has changed", None)
            return known[1]
        checker = SegmentChecker(CLUSTER_ID, base)
        try:
            checker.feed(content)
            checker.finish()
        except LedgerError:
            return None
        if checker.position != len(content):
            return None
        self._sound[base] = (content, checker.mark.log_end)
        return checker.mark.log_end


class ArchiveReaders:
    """Reads archived segments back from nodes, also while faults strike."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._dice = cluster.world.random("readers of the archive")
        self._read_back: dict[int, bytes] = {}
        """By base offset: a batch as it was read back first."""
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        """Begin, and go on as long as the cluster is busy."""
        self._cluster.later(_READ_EVERY_S, self._again)

    def _again(self) -> None:
        if self._cluster.busy:
            self._read()
            self.start()

    def _read(self) -> None:
        running = sorted(self._cluster.running())
        if not running:
            return
        node_id = self._dice.choice(running)
        storage: Any = self._cluster.controllers[node_id]._storage
        if storage.files.ledger is None:
            return
        receipts = storage.history.receipts()
        if receipts:
            receipt = self._dice.choice(receipts)
            done = partial(self._recalled, node_id, storage.history, receipt)
            process = self._cluster.hosts[node_id].process
            process.run(partial(storage.history.recall, receipt.base_offset, done))

    def _recalled(self, node_id: int, history: Any, receipt: Receipt, why: str) -> None:
        self.counts["could not be read back" if why else "read back"] += 1
        if why:
            return
        try:
            batches = history.read_from(receipt.base_offset, 100_000, receipt.end.log_end)
        except (SegmentAwayError, HistoryMissingError):
            return  # others were read back meanwhile, or the ledger was replaced
        for batch in batches:
            offset = parse(batch).header.base_offset
            if self._read_back.setdefault(offset, batch) != batch:
                why = f"I25: node {node_id} read other bytes back at offset {offset}"
                self._cluster.world.fail(why, node_id)

    def judge(self, log: list[bytes]) -> None:
        """What was read back is what the log holds."""
        whole = {parse(batch).header.base_offset: batch for batch in log}
        for offset, batch in self._read_back.items():
            if whole.get(offset) != batch:
                self._cluster.world.fail(f"I25: what was read back at {offset} is not the log's", 0)


class ArchivedRun:
    """Faults, readers and judges of one run of a cluster with an archive."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.invariant = ArchiveInvariant(cluster)
        self.faults = ArchiveFaults(cluster)
        self.readers = ArchiveReaders(cluster)

    def start(self) -> None:
        """Begin."""
        self.faults.start()
        self.readers.start()

    def judge(self) -> Counter[str]:
        """Read everything back from every node of a cluster at rest, and return what was counted.

        No offset is missing, and all nodes show the same log.
        """
        cluster, world = self._cluster, self._cluster.world
        if not world.run_for(_PATIENCE_S, self.all_known):
            world.fail("I25: a node does not learn where its history is", None)
        try:
            logs = {node_id: read_whole(cluster, node_id) for node_id in cluster.hosts}
        except (AssertionError, LedgerError) as error:
            world.fail(f"I25: {error}", None)
            raise
        first = logs[min(logs)]
        for node_id, log in logs.items():
            shorter = min(len(log), len(first))
            if log[:shorter] != first[:shorter]:
                world.fail(f"I25: node {node_id} shows another log", node_id)
        self.readers.judge(first)
        ends = [controller.ledger.log_end for controller in cluster.controllers.values()]
        if self.invariant.reached() < min(ends):
            world.fail(f"I25: the history ends at offset {self.invariant.reached()}", None)
        # The last requests of administrators may have come while segments were read back.
        if not world.run_for(_PATIENCE_S, cluster.at_rest):
            world.fail(f"I12: no rest after everything was read back: {cluster.unrest()}", None)
        self._copy_back()
        facts = Counter({"segments that left nodes": self.invariant.removed})
        return facts + self.readers.counts + self.faults.met

    def _copy_back(self) -> None:
        """Lay the archive's files into each node's `archive/`, so that judges read a whole log."""
        assert self._cluster.archive is not None
        for host in self._cluster.hosts.values():
            for name, content in self._cluster.archive.files.items():
                if f"{LOG_FOLDER}/{name}" in host.platter.names:
                    continue
                inode = Inode()
                inode.append(content)
                inode.sync(inode.changes)
                host.platter.names[f"{ARCHIVE_FOLDER}/{name}"] = inode

    def all_known(self) -> bool:
        """Every node knows where all of the history is."""
        return all(c._storage.history_from == 0 for c in self._cluster.controllers.values())


def read_whole(cluster: Cluster, node_id: int) -> list[bytes]:
    """Return all batches that a node can show, its archive's part read back. For a calm cluster."""
    history: Any = cluster.controllers[node_id]._storage.history
    process = cluster.hosts[node_id].process
    end = cluster.controllers[node_id].image.offset
    found: list[bytes] = []
    offset = history.log_start
    assert offset == 0, f"node {node_id} knows its history from {offset} only"
    while offset < end:
        try:
            batches = history.read_from(offset, 100_000, end)
        except SegmentAwayError:
            answers: list[str] = []
            process.run(partial(history.recall, offset, answers.append))
            assert cluster.world.run_for(60, lambda found=answers: bool(found))
            assert answers == [""], answers
            continue
        found += batches
        offset = parse(found[-1]).header.end_offset
    return found
