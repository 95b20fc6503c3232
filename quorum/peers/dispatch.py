"""Checks each frame's sender and term, and passes the frame to the part that handles it.

Rule: an answer counts only in its own term. If a voter's frame carries a higher term, the core
takes that term over and steps down at once. Requests of leaders and candidates are the exception:
there the rules of following and electing decide first, so a heard leader is not disturbed.

A non-voter's term means nothing. A voter's term counts up to a ceiling (`quorum.guard.ceiling`).
Frames that only a voter may send, and answers that nobody asked for, are dropped before their
fields are read.
"""

from quorum.guard.context import NodeContext
from quorum.guard.guard import Guard
from quorum.guard.replicas import PeerReplica
from quorum.peers.digests import Digests
from quorum.peers.files import FileExchange
from quorum.raft.core import Core, Role
from quorum.wire.codec import BadBytesError
from quorum.wire.formats import TOLERANT_FORMAT
from quorum.wire.frame_types import (
    AckFrame,
    AppendFrame,
    ConfirmedFrame,
    ContactsFrame,
    DigestFrame,
    Frame,
    ListedFrame,
    ListFrame,
    PieceFrame,
    PrevoteFrame,
    PrevoteRequestFrame,
    ProbeAnswerFrame,
    ProbeFrame,
    ReadFrame,
    RememberFrame,
    SnapshotFrame,
    TimeoutNowFrame,
    VoteFrame,
    VoteRequestFrame,
    VotersFrame,
)
from quorum.wire.frames import FrameKind, decode, is_of_a_newer_kind, kind_of

_JUDGED_BY_RULES = {
    FrameKind.APPEND,
    FrameKind.SNAPSHOT,
    FrameKind.VOTE_REQUEST,
    FrameKind.PREVOTE_REQUEST,
}
_WITHOUT_A_CORE = {
    FrameKind.DIGEST,
    FrameKind.LIST,
    FrameKind.LISTED,
    FrameKind.READ,
    FrameKind.PIECE,
    FrameKind.REMEMBER,
    FrameKind.CONTACTS,
    FrameKind.CONFIRMED,
    FrameKind.VOTERS,
}
_OF_LEADERS_AND_CANDIDATES = {*_JUDGED_BY_RULES, FrameKind.TIMEOUT_NOW}
"""Of these, also those of a voter of another set that may be in force
(`quorum.guard.heard_voters`).
"""
_OF_VOTERS = {
    FrameKind.APPEND,
    FrameKind.SNAPSHOT,
    FrameKind.VOTE_REQUEST,
    FrameKind.VOTE,
    FrameKind.PREVOTE_REQUEST,
    FrameKind.PREVOTE,
    FrameKind.TIMEOUT_NOW,
    FrameKind.CONTACTS,
    FrameKind.CONFIRMED,
}
"""Frames that only a voter may send: those that elect, those that lead, and contacts of brokers."""
_ANSWERS = {FrameKind.LISTED, FrameKind.PIECE}
_LOGGED_EVERY_S = 10.0


class Dispatch:
    """Passes frames to the parts that handle them."""

    def __init__(
        self, context: NodeContext, guard: Guard, files: FileExchange, digests: Digests
    ) -> None:
        self._context = context
        self._digests = digests
        self._guard = guard
        self._files = files
        self._logged_at: dict[int, float] = {}

    def read(self, node_id: int, data: bytes) -> tuple[PeerReplica, Frame] | None:
        """Return a linked replica and its decoded frame; None when the frame is refused."""
        context = self._context
        replica = context.replicas.get(node_id)
        if replica is None or not replica.linked:
            return None
        kind = kind_of(data)
        believed = replica.is_voter or (replica.may_be_voter and kind in _OF_LEADERS_AND_CANDIDATES)
        if not believed and kind in _OF_VOTERS:
            context.count("voters_frame_of_an_observer")
            return None
        # These may be large, and decoding 16 MiB holds up the loop.
        if kind in _ANSWERS and not self._files.awaits(node_id, kind, len(data)):
            context.count("answer_to_no_question")
            return None
        if replica.wire_format >= TOLERANT_FORMAT and is_of_a_newer_kind(data):
            context.count("frame_of_a_newer_kind")
            return None
        try:
            frame = decode(data, replica.wire_format)
        except BadBytesError as error:
            self._refuse(node_id, str(error))
            return None
        if frame.directory_id != replica.node.directory_id:
            context.count("frame_of_another_directory")
            return None
        return (replica, frame) if self._guard.ceiling.admits(replica, frame.term) else None

    def _refuse(self, node_id: int, why: str) -> None:
        """Count every refusal; log at most one in ten seconds per peer, so a flood fills no log."""
        context = self._context
        context.count("bad_frame")
        if context.now - self._logged_at.get(node_id, -_LOGGED_EVERY_S) >= _LOGGED_EVERY_S:
            self._logged_at[node_id] = context.now
            context.log.warning("frame_refused", node=node_id, why=why)

    def take(self, replica: PeerReplica, frame: Frame) -> None:
        """Route the frame to its handler by kind."""
        kind, term, guard = frame.kind, frame.term, self._guard
        if kind in _WITHOUT_A_CORE:
            self._take_beside(replica, frame)
            return
        core = self._context.core
        if core is None:
            return
        if term > core.term and replica.is_voter and kind not in _JUDGED_BY_RULES:
            core.raise_term(term, replica.node)
        if isinstance(frame, AckFrame):
            guard.memory.on_acknowledgement(replica, frame)
        match frame:
            case AppendFrame():
                guard.following.on_append(replica, frame)
            case SnapshotFrame():
                guard.following.on_snapshot(replica, frame)
            case VoteRequestFrame():
                guard.elections.on_vote_request(replica, frame)
            case PrevoteRequestFrame():
                guard.elections.on_prevote_request(replica, frame)
            case ProbeFrame():
                self._answer_probe(replica, core, frame.round)
            case ProbeAnswerFrame() if guard.repair.needed:
                guard.repair.on_answer(replica, term, frame.round, frame.last_index)
            case _ if self.is_current(term, core.term):
                self._take_answer(replica, core, frame)
            case _:
                self._context.count("answer_of_another_epoch")

    def is_current(self, stamp: int, term: int) -> bool:
        """Tell whether an answer with the term `stamp` counts in `term`."""
        return stamp == term

    def _take_answer(self, replica: PeerReplica, core: Core, frame: Frame) -> None:
        guard, leads = self._guard, core.role is Role.LEADER
        match frame:
            case AckFrame() if leads:
                match, next_index = frame.match, frame.next_index
                guard.replication.on_ack(replica, match, next_index, counted=frame.counted)
            case PrevoteFrame():
                guard.elections.on_prevote(replica, frame)
            case VoteFrame():
                guard.elections.on_vote(replica)
            case ProbeAnswerFrame() if leads:
                guard.reads.on_answer(replica, frame.round, counted=frame.counted)
            case TimeoutNowFrame():
                guard.elections.on_timeout_now(replica)

    def _answer_probe(self, replica: PeerReplica, core: Core, number: int) -> None:
        context = self._context
        if context.voters.we_vote:
            context.outbox.send(
                replica.node_id,
                FrameKind.PROBE_ANSWER,
                core.term,
                number,
                context.view.last,
                context.may_vote,
            )

    def _take_beside(self, replica: PeerReplica, frame: Frame) -> None:
        """Handle a frame that needs no core."""
        match frame:
            case DigestFrame():
                self._take_digest(replica, frame)
            case RememberFrame():
                self._guard.memory.on_remember(replica, frame)
            case ListFrame():
                self._files.on_list(replica, frame.number, frame.folder)
            case ReadFrame():
                self._files.on_read(replica, frame)
            case ContactsFrame():
                self._context.listener.on_contacts(replica.node_id, frame.contacts)
            case ConfirmedFrame():
                self._context.listener.on_confirmed(replica.node_id, frame.confirmed)
            case VotersFrame():
                self._guard.heard_voters.on_voters(replica, frame)
            case ListedFrame() | PieceFrame():
                self._files.on_answer(replica, frame)

    def _take_digest(self, replica: PeerReplica, frame: DigestFrame) -> None:
        self._guard.freshness.heard(replica, frame)
        self._context.listener.on_digest(replica.node_id, frame.digest, replica.is_voter)
        if replica.is_voter:
            self._digests.on_digest(replica)
