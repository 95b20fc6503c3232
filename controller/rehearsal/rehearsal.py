"""The controllers of a cluster, rehearsed: whoever leads decides, seals and replays at once.

Rule: every record is decided by the managers, sealed by the leader's batch writer and replayed into
its pending image, as on a real controller; nothing here makes a record. What is left out is what
writes nothing: Raft, the network, the disks, standbys, and the contacts of brokers that are well.
What brokers say is in `brokers`. Everything else that a leader does by itself, it does on the
stepped clock: it balances leaders, registers controllers, removes tokens, ends sessions.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from controller.config import ControllerConfig
from controller.http.change_routes import CHANGES
from controller.http.clients.asked import Asked
from controller.http.routes import ROUTES
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from controller.rehearsal.lone_quorum import LoneQuorum
from controller.rehearsal.stepped_clock import SteppedClock
from controller.replica.parts import ReplicaParts
from controller.result import ControllerResult, Decide
from ledger.batch import Batch
from ledger.chain import LogMark
from metadata.codec import decode_records
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.messages.long_lists import decode_long
from metadata.messages.parts import LongMessage
from metadata.messages.wire import JSON, encode
from metadata.records import PartitionChangeRecord, Record
from metadata.steps import finished
from metadata.uuids import parse_uuid_of
from quorum.api import Voter
from runtime.http.requests import Caller, Request
from runtime.randomness import Random

TAKEN_TOGETHER: Final = 192
"""Records that wait until the image behind them is built; a group has no more."""
_PATIENCE: Final = 10
"""So often a leader is asked to go on that has written nothing new."""
_NEVER_S: Final = 1e12
"""No timer looks for stalls of an event loop: there is none."""
_ROUTES: Final = {route.name: route for route in ROUTES}
_QUIET: Final = structlog.wrap_logger(
    structlog.ReturnLogger(), wrapper_class=structlog.make_filtering_bound_logger(50)
)


class SealedBatch(NamedTuple):
    """A batch, and its records as they were before they were encoded."""

    batch: Batch
    records: Sequence[Record]


class Answered(NamedTuple):
    """What became of a request, or of something that the cluster does itself."""

    base_offset: int
    """Where the log ended before."""
    end_offset: int
    """Where it ends now; equal if nothing was written."""
    time_ms: int
    reply: Any
    """The answer's message; None for what has none, and if the leader lost its office."""

    @property
    def wrote(self) -> bool:
        return self.end_offset > self.base_offset


class _RehearsedLeader(LeaderParts):
    """A controller's parts; it also shows the records of each batch."""

    def __init__(self, on_batch_records: Callable[[Sequence[Record]], None], **parts: Any) -> None:
        self._on_batch_records = on_batch_records
        super().__init__(**parts)

    def _on_records(self, records: Sequence[Record]) -> None:
        self._on_batch_records(records)
        super()._on_records(records)


class _LogEnd(NamedTuple):
    """What an epoch goes on behind."""

    end: LogMark

    def mark(self) -> LogMark:
        return self.end


class Rehearsal:
    """All controllers of a cluster; at most one of them leads."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: SteppedClock,
        voters: Sequence[Voter],
        random_of: Callable[[int, int], Random],
    ) -> None:
        """`config` is that of all; its node id doesn't count.

        `random_of(node, life)` returns the dice of a controller's process, the first of which is 0.
        """
        self.clock = clock
        self._config = msgspec.structs.replace(config, beat_s=_NEVER_S)
        self._voters = {voter.node_id: voter for voter in voters}
        self._random_of = random_of
        self._lives = dict.fromkeys(self._voters, 0)
        self._quorums: dict[int, LoneQuorum] = {}
        self._leaders: dict[int, _RehearsedLeader] = {}
        self._records: list[Sequence[Record] | None] = []
        """Of each batch that nobody has taken; None: the batch writer didn't show them."""
        self._waiting = 0
        self._defects: list[BaseException] = []
        self._image = MetadataImage()
        self._mark = LogMark.beginning(config.cluster_id)
        self._taken: list[SealedBatch] = []
        self.leader_id = 0
        """0: nobody leads."""
        self.epoch = 0
        first = LoneQuorum(0, self._all_voters, self._on_proposed, lambda: len(self._records))
        self._replica = ReplicaParts(
            self._config,
            clock,
            first,
            on_batch=lambda _batch: None,
            on_progress=lambda: None,
            on_own_skipped=lambda _reason: None,
            on_failed=lambda _reason: None,
            log=_QUIET,
        )
        for node_id in self._voters:
            self.restart(node_id)

    # -- the log --------------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        """What is decided so far. It must not be kept: the next decision changes it."""
        pending = self.leader.proposer.pending if self.leader_id else None
        return self._image if pending is None else pending.image

    @property
    def mark(self) -> LogMark:
        """Where the log ends."""
        pending = self.leader.proposer.pending if self.leader_id else None
        return self._mark if pending is None else pending.mark

    def take(self, at_least: int = TAKEN_TOGETHER) -> list[SealedBatch]:
        """Return the batches whose image is built; with `at_least` records, it is built now."""
        if self._waiting >= at_least:
            self._commit()
        taken, self._taken = self._taken, []
        return taken

    @property
    def committed(self) -> MetadataImage:
        """The image behind the last batch whose image is built; it may be kept."""
        return self._image

    def settled(self) -> MetadataImage:
        """Return the image behind everything that was decided; it may be kept."""
        self._commit()
        return self._image

    def _commit(self) -> None:
        pending = self.leader.proposer.pending if self.leader_id else None
        if pending is None:
            return
        self._image = self._replica.applier.image = pending.settled()
        self._mark = pending.mark
        for records in self._records:
            batch = pending.take()
            shown = decode_records(batch.records) if records is None else records
            self._taken.append(SealedBatch(batch, shown))
        self._records.clear()
        self._waiting = 0
        leader = self.leader
        leader.self_registration.look()
        leader.key_check.look()
        leader.token_expiry.look()

    def _on_proposed(self, _payload: bytes) -> None:
        self._records.append(None)

    def _on_batch_records(self, records: Sequence[Record]) -> None:
        self._records[-1] = records
        self._waiting += len(records)

    def go_on(self) -> None:
        """Move to the next time at which something is due, and let it happen."""
        before = len(self._records)
        self.clock.go_on()
        if self.leader_id and (len(self._records) > before or self.leader.proposer.busy):
            self.work_until(lambda: True)

    # -- who leads ------------------------------------------------------------------------------

    def restart(self, node_id: int) -> None:
        """A controller that doesn't lead starts anew, as another process."""
        assert node_id != self.leader_id
        random = self._random_of(node_id, self._lives[node_id])
        self._lives[node_id] += 1
        quorum = LoneQuorum(
            node_id, self._all_voters, self._on_proposed, lambda: len(self._records)
        )
        self._quorums[node_id] = quorum
        self._leaders[node_id] = _RehearsedLeader(
            self._on_batch_records,
            config=msgspec.structs.replace(self._config, node_id=node_id),
            clock=self.clock,
            random=random,
            quorum=quorum,
            replica=self._replica,
            on_defect=self._defects.append,
            log=_QUIET,
        )

    def elect(self, node_id: int, epoch: int) -> Answered:
        """Let a controller lead. The one that leads now is no leader any more."""
        self.depose()
        base, mark = self._mark.log_end, self._mark
        self.leader_id, self.epoch = node_id, epoch
        leader, quorum = self.leader, self._quorums[node_id]
        quorum.proposals_left = None
        leader.duties.begin_at_once(epoch, lambda: _LogEnd(mark))
        # Nobody watches the brokers' sessions by a timer: the owner says who is silent.
        leader.fencing.end()
        self.work_until(lambda: leader.duties.active)
        answered = Answered(base, self.mark.log_end, self.clock.now_ms, None)
        self.announce()
        return answered

    def depose(self) -> None:
        """Whoever leads, leads no more."""
        if self.leader_id:
            self._commit()
            self.leader.duties.end()
            self.clock.settle()
        self.leader_id = 0

    def announce(self) -> None:
        """Each controller says what it is; the leader writes what the log doesn't know."""
        self._commit()
        for node_id, controller in self._leaders.items():
            controller.self_registration.look()
            said = self._quorums[node_id].announced
            if said and node_id != self.leader_id:
                self.leader.self_registration.on_announcement(node_id, said)
            self.work_until(lambda: True)
            self._commit()

    def lose_office_after(self, batches: int) -> None:
        """The leader can propose only so many more batches."""
        self._quorums[self.leader_id].proposals_left = batches

    def cut_at(self, batch_bytes: int | None) -> None:
        """Let the leader divide changes into batches of so many bytes; None: as usual."""
        self.leader.proposer.batch_bytes = batch_bytes

    @property
    def leader(self) -> LeaderParts:
        """The parts of the controller that leads."""
        return self._leaders[self.leader_id]

    def work_until(self, is_done: Callable[[], bool]) -> None:
        """Let the leader work until something is done; all that it proposes is committed."""
        proposer, nothing_new = self.leader.proposer, 0
        while True:
            end = self.mark.log_end
            self.clock.settle()
            proposer.committed(self.mark.log_end)
            self.clock.settle()
            if self._defects:
                raise self._defects[0]
            if self.mark.log_end == end and not proposer.busy:
                if is_done():
                    return
                nothing_new += 1
                assert nothing_new < _PATIENCE, "the leader does nothing more"

    # -- requests -------------------------------------------------------------------------------

    def ask(
        self,
        caller: Caller,
        route: str,
        message: Any = None,
        *,
        arguments: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        spoil: bool = False,
    ) -> Answered:
        """Do what a request asks for, and return its answer. Raises LogbergError.

        `spoil`: the leader has a defect, and the last record of the change can't be replayed.
        """
        given = arguments or {}
        found = _ROUTES[route]
        path = found.path.format_map(given)
        request = Request(found.method, path, headers=headers or {}, caller=caller)
        if found.long_list:
            body = encode(message, JSON)
            message = finished(decode_long(found.request, found.long_list, body, JSON))
        change = CHANGES[route](self.leader, Asked(request, given, message))
        if spoil:
            change = _spoiled(change)
        base, answers = self.mark.log_end, list[Any]()
        self.leader.changes.submit(
            request, change, lambda answer, _request_id: answers.append(answer)
        )
        self.work_until(lambda: bool(answers))
        (answer,) = answers
        end = self.mark.log_end
        if isinstance(answer, LogbergError):
            if spoil or self._lost_office:
                return Answered(base, end, self.clock.now_ms, None)
            raise answer
        reply = answer.head if isinstance(answer, LongMessage) else answer
        return Answered(base, end, self.clock.now_ms, reply)

    def renew(self, session_id: str) -> None:
        """The client of a session says that it lives."""
        session = parse_uuid_of("sessionId", session_id)
        opened = self.image.coordination.sessions.get(session)
        if opened is not None:
            self.leader.session_contacts.touch(session, opened.ttl_ms / 1000)
            self.leader.session_expiry.reschedule()

    # -- how it is done ---------------------------------------------------------------------------

    @property
    def _lost_office(self) -> bool:
        return self._quorums[self.leader_id].proposals_left is not None

    def _all_voters(self) -> tuple[Voter, ...]:
        return tuple(self._voters.values())


def _spoiled(change: RequestedChange) -> RequestedChange:
    """Return a change whose last record is about a partition that doesn't exist."""
    decide: Decide = change.decide

    def spoiled(image: MetadataImage) -> Any:
        decided = decide(image)
        if not isinstance(decided, ControllerResult):
            decided = yield from decided
        nowhere = PartitionChangeRecord(0, bytes(16), (0,))
        return decided._replace(records=(*decided.records, nowhere))

    return change._replace(decide=spoiled)
