"""`quorum.api.Quorum` for a few controllers in one process, without disks or elections.

The test chooses the leader. A proposal enters the shared log after `COMMIT_S` of virtual time, if
the leader reaches a majority. Every reachable node hears of it after another `COMMIT_S`. A node
that was cut off or down hears what it missed when it is back.
"""

from collections.abc import Callable, Sequence

from quorum.api import (
    LeaderAndEpoch,
    Mark,
    NoRoomError,
    NotLeaderError,
    PeerFile,
    QuorumStatus,
    TransferRefusedError,
    Voter,
    VoterChangeRefusedError,
    VoterSet,
)

COMMIT_S = 0.002
HEARTBEAT_S = 0.1


class InMemoryCluster:
    """What the nodes share: the committed log, the leader, and which nodes are cut off."""

    def __init__(self, node_ids):
        self.node_ids = tuple(node_ids)
        self.log = []
        """(epoch, payloads); the index is the place, from 1."""
        self.leader = None
        self.epoch = 0
        self.cut_off = set()
        self.kept_from = {}
        """Node id → index before which others are sent to `on_catch_up`."""
        self.compacted = 0
        self.nodes = {}
        self.disks = {}
        self.manifests = {}
        self.voters = {i: Voter(i, bytes([i]) * 16, "127.0.0.1", 19090 + i) for i in self.node_ids}
        """The voters in force, by node id."""
        self.voters_since = 0
        self.voters_named = False
        self.observers = {}
        """Linked nodes that don't vote, as they would vote, by node id."""
        self.refusal = None
        """Why no change of the voters is possible now."""

    def alive(self):
        return [n for n in self.nodes.values() if n.started and n.node_id not in self.cut_off]

    def has_majority(self):
        return len(self.alive()) > len(self.node_ids) // 2

    def lead(self, node_id):
        """Let another node lead, in a new epoch."""
        old = self.nodes.get(self.leader)
        self.epoch += 1
        self.leader = node_id
        if old is not None and old.started and old.node_id not in self.cut_off:
            old.lose()
        for node in self.alive():
            node.learn()
        self.nodes[node_id].win()

    def commit(self, epoch, payloads):
        self.log.append((epoch, list(payloads)))
        for node in self.alive():
            node.clock.call_later(COMMIT_S, node.deliver)

    def cut(self, *node_ids):
        self.cut_off |= set(node_ids)

    def heal(self):
        self.cut_off.clear()
        for node in self.alive():
            node.learn()
            node.deliver()


class InMemoryQuorum:
    """The quorum as one node sees it."""

    def __init__(self, cluster: InMemoryCluster, node_id: int, clock, listener) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.clock = clock
        self.listener = listener
        self.started = False
        self.delivered = 0
        self.leading = 0
        self.seen = LeaderAndEpoch(None, 0)
        self.waiting = []
        self.changing = None
        """The voters of a change that waits, by node id."""
        self.catching_up: Mark | None = None
        self.resigned = []
        self.room = None
        """How many proposals its journal has room for; None: no end."""
        self.refused = 0
        self.current = None
        self.announcement = b""
        cluster.nodes[node_id] = self

    # -- the test's side ------------------------------------------------------------------

    def learn(self):
        now = LeaderAndEpoch(self.cluster.leader, self.cluster.epoch)
        if now != self.seen:
            self.seen = now
            if self.leading and now.leader != self.node_id:
                self.lose()
            self.listener.on_leader_changed(now)

    def win(self):
        self.learn()
        epoch = self.cluster.epoch

        def begin():
            if self.started and self.cluster.epoch == epoch:
                self.deliver()
                self.leading = epoch
                self.listener.on_leadership(epoch)

        self.clock.call_later(COMMIT_S, begin)

    def lose(self):
        if self.leading:
            epoch, self.leading = self.leading, 0
            self.waiting.clear()
            self.changing = None
            self.listener.on_leadership_lost(epoch)

    def deliver(self):
        if not self.started or self.node_id in self.cluster.cut_off or self.catching_up:
            return
        if self.delivered < self.cluster.compacted:
            source = self.cluster.leader
            mark = self.cluster.manifests.get(source)
            if source != self.node_id and mark is not None:
                self.catching_up = mark
                self.listener.on_catch_up(mark, source)
                return
        while self.delivered < len(self.cluster.log):
            epoch, payloads = self.cluster.log[self.delivered]
            self.delivered += 1
            self.listener.on_committed(self.delivered, epoch, payloads)

    # -- quorum.api.Quorum ----------------------------------------------------------------

    def start(self) -> Mark | None:
        self.started = True
        mark = self.cluster.manifests.get(self.node_id)
        self.delivered = mark.index if mark is not None else 0
        self.clock.call_soon(self.learn)
        self.clock.call_soon(self.deliver)
        return mark

    def scrub(self):
        yield from ()

    def stop(self) -> None:
        self.started = False
        self.leading = 0

    def propose(self, payload: bytes) -> None:
        if not self.leading or not self.started:
            raise NotLeaderError(self.seen.leader, self.seen.epoch)
        if self.room is not None:
            if self.room == 0:
                self.refused += 1
                raise NoRoomError("the disk is almost full")
            self.room -= 1
        self.waiting.append(payload)
        epoch = self.leading
        if len(self.waiting) == 1:
            self.clock.call_later(COMMIT_S, lambda: self.flush(epoch))

    def flush(self, epoch):
        if self.leading != epoch or self.cluster.epoch != epoch or not self.waiting:
            return
        if self.node_id in self.cluster.cut_off or not self.cluster.has_majority():
            self.clock.call_later(COMMIT_S * 10, lambda: self.flush(epoch))
            return
        payloads, self.waiting = self.waiting, []
        self.cluster.commit(epoch, payloads)
        if self.changing is not None:
            self.cluster.voters = self.changing
            self.cluster.voters_since, self.changing = len(self.cluster.log), None

    def unsent(self) -> int:
        return len(self.waiting)

    def leader_and_epoch(self) -> LeaderAndEpoch:
        return self.seen

    def read_index(self, on_ready: Callable[[bool], None]) -> None:
        epoch = self.leading

        def answer():
            confirmed = (
                bool(epoch)
                and self.cluster.epoch == epoch
                and self.node_id not in self.cluster.cut_off
                and self.cluster.has_majority()
            )
            if confirmed:
                self.deliver()
            on_ready(confirmed)

        self.clock.call_later(COMMIT_S, answer)

    def current_at(self) -> float | None:
        cluster = self.cluster
        whole = self.node_id not in cluster.cut_off and cluster.has_majority()
        leader = cluster.nodes.get(cluster.leader)
        led = leader is not None and leader.started and leader.node_id not in cluster.cut_off
        if whole and led and self.delivered == len(cluster.log):
            self.current = self.clock.monotonic()
        return self.current

    def resign(self, reason: str) -> None:
        self.resigned.append(reason)
        self.lose()
        if self.cluster.leader == self.node_id:
            self.cluster.leader = None
            for node in self.cluster.alive():
                node.seen = LeaderAndEpoch(None, self.cluster.epoch)

    def refusal_to_hand_over(self, node_id: int) -> TransferRefusedError | None:
        if node_id not in self.cluster.voters:
            return TransferRefusedError(f"node {node_id} is no voter", later=False)
        if node_id not in {node.node_id for node in self.cluster.alive()}:
            return TransferRefusedError(f"node {node_id} is not linked", later=True)
        return None

    def hand_over(self, node_id: int, reason: str) -> None:
        if not self.leading:
            raise NotLeaderError(self.seen.leader, self.seen.epoch)
        refusal = self.refusal_to_hand_over(node_id)
        if refusal is not None:
            raise refusal
        if node_id != self.node_id:
            self.clock.call_later(COMMIT_S, lambda: self.cluster.lead(node_id))

    def compact(self, mark: Mark, on_done: Callable[[bool], None]) -> None:
        self.cluster.manifests[self.node_id] = mark
        self.clock.call_soon(lambda: on_done(True))

    def resumes_at(self) -> Mark | None:
        return self.cluster.manifests.get(self.node_id)

    def caught_up(self, mark: Mark) -> None:
        assert mark == self.catching_up
        self.cluster.manifests[self.node_id] = mark
        self.delivered = mark.index
        self.catching_up = None

        def go_on():
            self.listener.on_caught_up(mark)
            self.deliver()

        self.clock.call_soon(go_on)

    def out_of_reach(self, mark: Mark) -> None:
        """The leader offers its mark with its next heartbeat."""
        if mark != self.catching_up:
            return

        def offer():
            if self.catching_up == mark != self.cluster.manifests.get(self.cluster.leader):
                self.catching_up = None
                self.deliver()

        self.clock.call_later(HEARTBEAT_S, offer)

    def announce(self, data: bytes) -> None:
        """Repeat the announcement until it is empty."""
        begins = data and not self.announcement
        self.announcement = data
        if begins:
            self.repeat()

    def tell(self, data: bytes) -> None:
        self.set_digest(data)

    def repeat(self):
        if self.announcement and self.started:
            self.set_digest(self.announcement)
            self.clock.call_later(HEARTBEAT_S, self.repeat)

    def set_digest(self, digest: bytes) -> None:
        assert len(digest) <= 512
        for node in self.cluster.alive():
            if node.node_id != self.node_id and self.node_id not in self.cluster.cut_off:
                node.clock.call_later(
                    COMMIT_S,
                    lambda node=node: node.listener.on_digest(self.node_id, digest, True),
                )

    def send_contacts(self, node_id: int, contacts: bytes) -> bool:
        return self.send(node_id, lambda listener: listener.on_contacts(self.node_id, contacts))

    def send_confirmed(self, node_id: int, confirmed: bytes) -> bool:
        return self.send(node_id, lambda listener: listener.on_confirmed(self.node_id, confirmed))

    def send(self, node_id, tell):
        node = self.cluster.nodes.get(node_id)
        if node is None or not node.started or {node_id, self.node_id} & self.cluster.cut_off:
            return False
        node.clock.call_later(COMMIT_S, lambda: tell(node.listener))
        return True

    def list_files(self, node_id, folder, on_reply) -> None:
        disk = self.disk_of(node_id)
        names: Sequence[tuple[str, int]] | None = None
        if disk is not None:
            names = [(n, disk.size(f"{folder}/{n}")) for n in disk.list(folder)]
        self.clock.call_later(COMMIT_S, lambda: on_reply(names))

    def read_file(self, node_id, name, position, length, on_reply) -> None:
        disk = self.disk_of(node_id)
        piece = None
        if disk is not None and disk.exists(name):
            piece = PeerFile(disk.size(name), disk.read(name, position, length))
        self.clock.call_later(COMMIT_S, lambda: on_reply(piece))

    def disk_of(self, node_id):
        node = self.cluster.nodes.get(node_id)
        if node is None or not node.started or node_id in self.cluster.cut_off:
            return None
        if self.node_id in self.cluster.cut_off:
            return None
        return self.cluster.disks.get(node_id)

    def voters(self) -> tuple[Voter, ...]:
        return tuple(voter for _, voter in sorted(self.cluster.voters.items()))

    def voter_set(self) -> VoterSet:
        settled, named = self.changing is None, self.cluster.voters_named
        return VoterSet(self.voters(), self.cluster.voters_since, settled, named)

    def candidate(self, node_id: int) -> Voter | None:
        return self.cluster.observers.get(node_id) or self.cluster.voters.get(node_id)

    def refusal_of(self, voters: Sequence[Voter]) -> VoterChangeRefusedError | None:
        if self.changing is not None:
            return VoterChangeRefusedError("another change of the voters is under way", later=True)
        return self.cluster.refusal

    def change_voters(self, voters: Sequence[Voter], payload: bytes) -> None:
        """Voters and payload are committed with what waits, in one entry."""
        refusal = self.refusal_of(voters)
        if refusal is not None:
            raise refusal
        self.propose(payload)
        self.changing = {voter.node_id: voter for voter in voters}

    def status(self) -> QuorumStatus:
        role = "leader" if self.leading else "follower"
        last = len(self.cluster.log)
        return QuorumStatus(
            self.node_id,
            bytes([self.node_id]) * 16,
            role,
            self.seen.leader,
            self.seen.epoch,
            last,
            self.delivered,
            last,
            last,
            0,
            (),
            "",
        )
