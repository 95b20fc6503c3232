"""Harms bytes on the network without TLS: frames between controllers, a fetch's answer to an agent.

Rule: a link delivers the frames that were sent, in order, or it ends. A client uses an answer only
if its body fits its Content-Digest, and an agent keeps only batches that continue its own log.
"""

from collections.abc import Sequence

import structlog

from broker_agent.view import DiffersError, MetadataView, TooNewError, UnusableAnswerError
from ledger.chain import LogMark
from metadata.codec import encode_record
from metadata.errors import LogbergError
from metadata.image import image_to_records
from metadata.messages.fetch import MetadataFetchReply, SeenState, StateAt
from metadata.messages.wire import MSGPACK, decode_fetch_reply, encode
from metadata.steps import finished
from quorum.api import Voter
from quorum.journal.manifest import JournalManifest, encode_manifest
from quorum.wire.codec import dumps
from quorum.wire.frames import FrameKind
from quorum.wire.frames import encode as encode_frame
from runtime.http.content_digest import content_digest, is_content
from runtime.links.frames import (
    BadFrameError,
    Hello,
    LinkFrameReader,
    Note,
    framed,
    framed_hello,
    framed_note,
)
from runtime.links.interface import FRAME_BYTES_MAX
from tests.flips.ledgers import batches_of
from tests.flips.memory import Files
from tests.flips.verdicts import DETECTED, HARMLESS, SILENT, Verdict, unclean
from tests.unit.ledger.ledger_world import CLUSTER

_STREAM = "from a controller"
_BODY = "an answer's body"
_PIECE_BYTES = 100
_DIRECTORY = bytes(range(16))


class LinkCase:
    """The bytes that one controller sends another on a link, as they come out of the socket."""

    def __init__(self, payloads: Sequence[bytes]) -> None:
        self.file = "link"
        self._payloads = list(payloads)
        self.files: Files = {_STREAM: b"".join(map(framed, payloads))}
        self.targets = [_STREAM]
        self.others: Files = {}
        assert self.judge(self.files).kind == HARMLESS

    def judge(self, harmed: Files, *, thorough: bool = False) -> Verdict:
        """Read the stream; what comes behind it, on a live link, is more of the same."""
        stream = harmed.get(_STREAM, b"")
        heard, reader = list[bytes](), LinkFrameReader(FRAME_BYTES_MAX)
        try:
            for start in range(0, len(stream), _PIECE_BYTES):
                heard += reader.feed(stream[start : start + _PIECE_BYTES])
            if len(stream) == len(self.files[_STREAM]):
                heard += reader.feed(self.files[_STREAM])
        except BadFrameError:
            if heard != self._payloads[: len(heard)]:
                return Verdict(SILENT, "frames that nobody sent, then the end of the link")
            return Verdict(DETECTED, "the link ends")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return unclean(error)
        if len(stream) < len(self.files[_STREAM]):
            if heard != self._payloads[: len(heard)]:
                return Verdict(SILENT, "frames that nobody sent, then the end of the link")
            return Verdict(HARMLESS, "the link ends behind whole frames")
        if heard != self._payloads * 2:
            return Verdict(SILENT, "other frames, or none for a while")
        return Verdict(HARMLESS, "the same is heard")


class AnswerCase:
    """The body of an answer to a MetadataFetch, with the digest that was sent with it."""

    def __init__(self, *, with_digest: bool = True) -> None:
        self.file = "fetch"
        self._batches = batches_of(11, 5)
        self._reply = self._answer()
        body = encode(self._reply, MSGPACK)
        self._said = content_digest(body) if with_digest else None
        self.files: Files = {_BODY: body}
        self.targets = [_BODY]
        self.others: Files = {}
        encoded = [batch.encoded for batch in self._batches]
        self._true = [self._keeps(encoded[:count]) for count in range(len(encoded) + 1)]
        assert self.judge(self.files).kind == HARMLESS

    def judge(self, harmed: Files, *, thorough: bool = False) -> Verdict:
        """Take it as an agent does; without a digest only what is kept is judged."""
        body = harmed.get(_BODY, b"")
        if not is_content(body, self._said):
            return Verdict(DETECTED, "not what its digest says")
        try:
            reply = decode_fetch_reply(200, body, MSGPACK)
            kept = self._keeps(reply.batches, reply.state_hash)
        except (LogbergError, UnusableAnswerError, DiffersError, TooNewError) as error:
            return Verdict(DETECTED, type(error).__name__)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return unclean(error)
        if kept not in self._true:
            return Verdict(SILENT, "an agent keeps another image")
        if reply != self._reply and self._said is not None:
            return Verdict(SILENT, "an agent is told something else")
        return Verdict(HARMLESS, "an agent keeps the same, or less")

    def _answer(self) -> MetadataFetchReply:
        batches = tuple(batch.encoded for batch in self._batches)
        view = _view()
        finished(view.apply_in_steps(batches))
        mark, state = view.mark, view.newest.image.state_hash
        assert state is not None
        return MetadataFetchReply(
            broker_epoch=3,
            state=SeenState.ONLINE,
            caught_up=True,
            leader_id=1,
            leader_epoch=4,
            leader_url="http://controller-1",
            high_watermark=mark.log_end,
            batches=batches,
            state_hash=StateAt(mark.log_end, mark.head, state.shared_bytes()),
            session_timeout_ms=9_000,
        )

    def _keeps(
        self, batches: Sequence[bytes], state: StateAt | None = None
    ) -> tuple[LogMark, list[bytes]]:
        """The place and the image of an agent that had nothing before."""
        view = _view()
        finished(view.apply_in_steps(batches, state))
        if view.newest.image.transaction is not None:
            return view.mark, []
        return view.mark, list(
            map(encode_record, image_to_records(view.newest.image, for_brokers=True))
        )


def _view() -> MetadataView:
    return MetadataView(CLUSTER, (), structlog.get_logger())


def link() -> LinkCase:
    """The greeting, then a frame of each kind that carries much."""
    first, second = (b"a command", 41, 3), (b"another", 42, 4)
    voters = (Voter(1, _DIRECTORY, "controller-1", 19091),)
    manifest = JournalManifest(CLUSTER, first, second, b"a mark", voters, _DIRECTORY, 4_711)
    fields: dict[FrameKind, tuple[object, ...]] = {
        FrameKind.APPEND: (40, 40, 3, (first, second)),
        FrameKind.ACK: (42, 43, True),
        FrameKind.SNAPSHOT: (42, encode_manifest(manifest)),
        FrameKind.VOTE_REQUEST: (42, 4, False),
        FrameKind.VOTE: (),
        FrameKind.PREVOTE_REQUEST: (1, 42, 4),
        FrameKind.PREVOTE: (1, True),
        FrameKind.FORMATION: (b"who the voters were",),
        FrameKind.DIGEST: (b"what the states were",),
        FrameKind.PIECE: (1, 70, b"bytes of a segment, or of a checkpoint" * 2),
    }
    hello = Hello(b"instance", b"the link", bytes(64), dumps((1, CLUSTER, 1)))
    notes = [framed_hello(hello), framed_note(Note.READY), framed_note(Note.OPEN)]
    payloads = [payload for note in notes for payload in LinkFrameReader().feed(note)]
    frames = [encode_frame(kind, 4, _DIRECTORY, *each) for kind, each in fields.items()]
    return LinkCase([*payloads, *frames, *frames[:2]])


def answer() -> AnswerCase:
    """With a digest, as our servers send it."""
    return AnswerCase()


def answer_without_digest() -> AnswerCase:
    """As a proxy might leave it: then batches are still proved, and nothing else is kept."""
    return AnswerCase(with_digest=False)
