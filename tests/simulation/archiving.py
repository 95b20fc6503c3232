"""The archive of a simulated cluster: its faults, and the invariant of what lies in it.

Invariant I25: a segment that left a node's `log/` below others is in the archive, sound from its
first byte to its last; and from offset 0 on, each offset is in the archive or on some node.

Rule: what is looked at is what platters and archive hold, and not what nodes believe.
"""

import re
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

from ledger.batch import parse
from ledger.checker import SegmentChecker
from ledger.errors import LedgerError, SegmentAwayError
from ledger.segments import LOG_FOLDER, segment_name
from runtime.simulated.world import Process
from tests.simulation.cluster import CLUSTER_ID, Cluster

_SEGMENT = re.compile(rf"{LOG_FOLDER}/([0-9]{{20}})\.log")
_GAP_S = (0.1, 1.5)
_LENGTH_S = (0.1, 3.0)
_ACTS = ("gone", "refuses", "slow", "silent")
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

    def _strike(self) -> None:
        if self._ended:
            return
        act = self._dice.choice(_ACTS)
        self.met[act] += 1
        setattr(self._archive, act, True)
        self._cluster.later(self._dice.uniform(*_LENGTH_S), self._pass)

    def _pass(self) -> None:
        self._archive.heal()
        self.start()

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
        self._here: dict[int, set[int]] = {}
        self._sound: dict[int, tuple[bytes, int]] = {}
        """By base offset: the archive's content that was verified, and the offset of its end."""
        self.removed = 0
        cluster.world.after_event(self.after_event)

    def after_event(self, process: Process | None) -> None:
        if process is None or process.node_id not in self._cluster.hosts:
            return
        node_id = process.node_id
        here, before = self._bases(node_id), self._here.get(node_id, set())
        self._here[node_id] = here
        for base in before - here:
            if here and base < max(here):
                self._removed(node_id, base)

    def _bases(self, node_id: int) -> set[int]:
        names = self._cluster.hosts[node_id].platter.names
        return {int(found[1]) for name in names if (found := _SEGMENT.fullmatch(name))}

    def _removed(self, node_id: int, base: int) -> None:
        self.removed += 1
        if self._end_in_archive(base) is None:
            reason = f"I25: segment {base} left node {node_id}, and the archive has none"
            self._cluster.world.fail(reason, node_id)
            return
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
        checker.feed(content)
        checker.finish()
        assert checker.position == len(content)
        self._sound[base] = (content, checker.mark.log_end)
        return checker.mark.log_end


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
