"""The invariants of a quorum, checked while it runs. Each entry is checked once, which is cheap.

docs/simulation.md defines all invariants. These are checked here, by methods of `Invariants`:

    I1  one leader an epoch                    leadership
    I2  logs match                             matched
    I3  a leader has every committed entry     complete
    I4  an index holds one entry for ever      committed, caught_up
    I5  acknowledged changes are never lost    complete
    I6  epochs never decrease                  leader_seen
    I7  reads see what was acknowledged        read
"""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorum.api import LeaderAndEpoch, Mark
from quorum.raft.core import Role

if TYPE_CHECKING:
    from runtime.simulated.world import Process
    from tests.simulation.quorum_cluster import Owner, QuorumCluster


class Invariants:
    """The memory of a run: outlives every process in it."""

    def __init__(self, cluster: "QuorumCluster") -> None:
        self.cluster = cluster
        self.leader_of: dict[int, int] = {}
        self.payloads_at: dict[int, tuple[int, bytes]] = {}
        """Index to epoch and payloads, of all that was ever delivered."""
        self.index_of: dict[bytes, int] = {}
        self.must_be: dict[int, bytes] = {}
        """Acknowledged: index to payload's number, for the check of leaders."""
        self.acknowledged_index = 1
        self.store_end: dict[int, int] = {}
        """Index to length of the owner's store behind it."""
        self.seen_in: dict[int, int] = {}
        """Index to the term of the node that handed it up first: it was committed by then."""
        self.entries: dict[tuple[int, int], int] = {}
        """Index and term to a checksum of entry and of the one before: I2."""
        self.term_floor: dict[int, int] = {}
        self.delivered: dict[int, int] = {}
        self.roles: dict[int, tuple[int, bool]] = {}
        self.tails: dict[int, tuple[int, int]] = {}
        self.violations = 0
        self.liars: set[int] = set()
        """Voters that forge: one that says it leads is believed, and no invariant is about that."""

    def fail(self, what: str, node_id: int) -> None:
        self.violations += 1
        self.cluster.world.fail(what, node_id)

    def forgot(self, node_id: int) -> None:
        """Its folder was damaged: it may know of fewer epochs than it did."""
        self.term_floor.pop(node_id, None)

    # What the owners report.

    def restarted(self, node_id: int) -> None:
        self.delivered.pop(node_id, None)
        self.roles.pop(node_id, None)
        self.tails.pop(node_id, None)

    def committed(
        self, node_id: int, index: int, epoch: int, payloads: Sequence[bytes], owner: "Owner"
    ) -> None:
        """I4: an index holds the same entry on every node, for ever."""
        joined = b"".join(len(p).to_bytes(4, "big") + p for p in payloads)
        known = self.payloads_at.get(index)
        if known is None:
            self.payloads_at[index] = (epoch, joined)
            core = owner.quorum.context.core
            assert core is not None
            self.seen_in[index] = core.term
            for payload in payloads:
                number = payload[:8]
                if self.index_of.setdefault(number, index) != index:
                    self.fail(f"I4: payload {number.hex()} stands at two indexes", node_id)
        elif known != (epoch, joined):
            self.fail(f"I4: index {index} holds another entry than before", node_id)
        if index <= owner.last_delivered:
            self.fail(f"index {index} was handed up twice", node_id)
        # Ours only are numbered: between two delivered there may be no-ops, never payloads.
        for missing in range(owner.last_delivered + 1, index):
            if missing in self.payloads_at:
                self.fail(f"I4: index {missing} was left out", node_id)
        end = len(owner.content) + len(joined)
        if self.store_end.setdefault(index, end) != end:
            self.fail(f"I4: what stands before index {index} has another length", node_id)

    def acknowledged(self, payload: bytes) -> None:
        index = self.index_of[payload[:8]]
        self.must_be[index] = payload[:8]
        self.acknowledged_index = max(self.acknowledged_index, index)

    def leadership(self, node_id: int, epoch: int) -> None:
        """I1: there is at most one leader in an epoch."""
        known = self.leader_of.setdefault(epoch, node_id)
        if known != node_id:
            self.fail(f"I1: nodes {known} and {node_id} lead epoch {epoch}", node_id)

    def leader_seen(self, node_id: int, now: LeaderAndEpoch) -> None:
        """I6: a node never sees a lower epoch, until its folder is damaged."""
        if now.epoch < self.term_floor.get(node_id, 0):
            self.fail(f"I6: the epoch fell to {now.epoch}", node_id)
        self.term_floor[node_id] = now.epoch
        if now.leader is not None and now.leader not in self.liars:
            self.leadership(now.leader, now.epoch)

    def caught_up(self, node_id: int, mark: Mark, owner: "Owner") -> None:
        end = int.from_bytes(mark.data, "big")
        if self.store_end.get(mark.index) != end or len(owner.content) != end:
            self.fail(f"I4: the mark at {mark.index} stands for another store", node_id)

    def read(self, node_id: int, delivered: int, must_see: int) -> None:
        """I7: a read sees all that was acknowledged before it began."""
        if delivered < must_see:
            self.fail(f"I7: a read saw {delivered}, {must_see} was acknowledged", node_id)

    # After every event: the core that ran.

    def after_event(self, process: "Process | None") -> None:
        if process is None or not process.alive:
            return
        node_id = process.node_id
        owner = self.cluster.owners.get(node_id)
        if owner is None or owner.quorum is None or not hasattr(owner.quorum, "context"):
            return
        context = owner.quorum.context
        core = context.core
        if core is None:
            return
        leads = core.role is Role.LEADER
        if leads and context.voters.majority() == 1:
            # A single voter needs no answer. It tells nobody of its epoch before that is durable.
            leads = context.outbox.is_durable(context.journal.position_of_vote)
        now = (core.term, leads)
        before = self.roles.get(node_id)
        if now != before:
            self.roles[node_id] = now
            if leads:
                self.leadership(node_id, core.term)
                self.complete(node_id, core.term, owner)
        self.matched(node_id, owner)

    def complete(self, node_id: int, term: int, owner: "Owner") -> None:
        """I3 and I5: a new leader holds all that was delivered in terms before its own.

        Not what was delivered in later ones: votes that were held up may make a leader of a
        term that is long over; it can't commit anything.
        """
        journal = owner.quorum.context.journal
        for index, known in self.payloads_at.items():
            if index < journal.first_index or self.seen_in[index] >= term:
                continue
            entry = journal.entry(index)
            if entry is None or entry[2] != known[0]:
                what = "I5: an acknowledged" if index in self.must_be else "I3: a committed"
                self.fail(f"{what} entry {index} is not the leader's", node_id)

    def matched(self, node_id: int, owner: "Owner") -> None:
        """I2: entries of equal index and term are equal, and so is everything before them."""
        journal = owner.quorum.context.journal
        last = journal.entry(journal.last_index)
        if last is None:
            return
        tail = (last[1], last[2])
        before = self.tails.get(node_id)
        if tail == before:
            return
        self.tails[node_id] = tail
        index = tail[0]
        while True:
            entry = journal.entry(index)
            if entry is None:
                return
            previous = journal.entry(index - 1)
            if previous is None:
                return
            check = zlib.crc32(entry[0], previous[2])
            key = (index, entry[2])
            known = self.entries.get(key)
            if known is None:
                self.entries[key] = check
            elif known != check:
                self.fail(f"I2: entry {index} of epoch {entry[2]} differs between logs", node_id)
            else:
                return
            index -= 1
