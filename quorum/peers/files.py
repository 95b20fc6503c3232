"""Reads files of peers over the links, for a follower that catches up or fetches history.

Rule: a peer reads only shared folders, only plain names, and one piece at a time. It asks for a
piece by position, so a fetch can go on where it stopped. The disk is read off the loop.

Request numbers start at a value drawn for this incarnation. So a late answer to an earlier
incarnation matches no request.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from quorum.api import PeerFile
from quorum.guard.context import NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.wire.frame_types import AnswerFrame, ListedFrame, PieceFrame, ReadFrame
from quorum.wire.frames import FILE_PIECE_BYTES_MAX, FrameKind
from runtime.clock import Timer
from runtime.disk.paths import BadNameError, checked
from runtime.links.interface import FRAME_BYTES_MAX

OnListed = Callable[[Sequence[tuple[str, int]] | None], None]
OnPiece = Callable[[PeerFile | None], None]
Piece = tuple[int, bytes]
_NUMBER_BYTES = 7
_ANSWERS = {FrameKind.LIST: FrameKind.LISTED, FrameKind.READ: FrameKind.PIECE}


class _Request(NamedTuple):
    node_id: int
    kind: FrameKind
    """The kind of the answer."""
    bytes_max: int
    timer: Timer
    answered: Callable[[AnswerFrame | None], None]


class FileExchange:
    """Asks peers for files, and answers peers that ask."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._number = int.from_bytes(
            context.journal.history.lineage.incarnation[-_NUMBER_BYTES:], "little"
        )
        self._waiting: dict[int, _Request] = {}
        self.formats_for: Callable[[PeerReplica, str], list[tuple[str, int]] | None] = (
            lambda _replica, _folder: None
        )
        """Answers a peer that asks for our wire formats; None: the peer asks for a folder."""

    def ask_list(
        self, node_id: int, folder: str, on_reply: OnListed, bytes_max: int = FRAME_BYTES_MAX
    ) -> None:
        """Ask for names and sizes. An answer longer than `bytes_max` is not read."""

        def answered(frame: AnswerFrame | None) -> None:
            on_reply(frame.listing if isinstance(frame, ListedFrame) and frame.found else None)

        self._ask(node_id, FrameKind.LIST, (folder,), answered, bytes_max)

    def ask_piece(
        self, node_id: int, name: str, position: int, length: int, on_reply: OnPiece
    ) -> None:
        """Ask for a piece of a file."""

        def answered(frame: AnswerFrame | None) -> None:
            piece = None
            if isinstance(frame, PieceFrame) and frame.total_size >= 0:
                piece = PeerFile(frame.total_size, frame.data)
            on_reply(piece if piece is not None and len(piece.data) <= length else None)

        length = min(length, FILE_PIECE_BYTES_MAX)
        self._ask(node_id, FrameKind.READ, (name, position, length), answered)

    def _ask(
        self,
        node_id: int,
        kind: FrameKind,
        fields: tuple[object, ...],
        answered: Callable[[AnswerFrame | None], None],
        bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        context = self._context
        self._number += 1
        number = self._number
        timer = context.clock.call_later(
            context.config.file_timeout_ms / 1000, lambda: self._finish(number, None)
        )
        self._waiting[number] = _Request(node_id, _ANSWERS[kind], bytes_max, timer, answered)
        if not context.outbox.send(node_id, kind, context.term, number, *fields):
            context.clock.call_soon(lambda: self._finish(number, None))

    def awaits(self, node_id: int, kind: int | None, size: int) -> bool:
        """Tell whether we asked a peer for an answer of this kind and size (in bytes)."""
        return any(
            (request.node_id, request.kind) == (node_id, kind) and size <= request.bytes_max
            for request in self._waiting.values()
        )

    def on_answer(self, replica: PeerReplica, frame: AnswerFrame) -> None:
        """Take a peer's answer."""
        request = self._waiting.get(frame.number)
        if request is not None and (request.node_id, request.kind) == (replica.node_id, frame.kind):
            self._finish(frame.number, frame)

    def on_link_down(self, node_id: int) -> None:
        """A link ended, so its answers never come: tell those who wait for them now."""
        for number in [n for n, request in self._waiting.items() if request.node_id == node_id]:
            self._finish(number, None)

    def _finish(self, number: int, frame: AnswerFrame | None) -> None:
        request = self._waiting.pop(number, None)
        if request is None:
            return
        request.timer.cancel()
        if not self._context.stopped:
            request.answered(frame)

    def on_list(self, replica: PeerReplica, number: int, folder: str) -> None:
        """Answer with names and sizes in a shared folder."""
        context, disk = self._context, self._context.disk
        formats = self.formats_for(replica, folder)
        if formats is not None:
            self._send_listing(replica.node_id, number, formats)
            return
        if folder not in context.config.shared_folders:
            self._send_listing(replica.node_id, number, None)
            return

        def look() -> list[tuple[str, int]]:
            return [(name, disk.size(f"{folder}/{name}")) for name in disk.list(folder)]

        disk.in_background(
            look, lambda found, _error: self._send_listing(replica.node_id, number, found)
        )

    def _send_listing(self, node_id: int, number: int, found: list[tuple[str, int]] | None) -> None:
        context = self._context
        if not context.stopped:
            context.outbox.send(
                node_id,
                FrameKind.LISTED,
                context.term,
                number,
                found is not None,
                tuple(found or ()),
            )

    def on_read(self, replica: PeerReplica, frame: ReadFrame) -> None:
        """Answer with a piece of a file in a shared folder."""
        disk = self._context.disk
        number, name, position, length = frame[3:]
        if not self.may_read(name) or length > FILE_PIECE_BYTES_MAX:
            self._send_piece(replica.node_id, number, None)
            return

        def read() -> Piece:
            return disk.size(name), disk.read(name, position, length)

        disk.in_background(
            read, lambda piece, _error: self._send_piece(replica.node_id, number, piece)
        )

    def may_read(self, name: str) -> bool:
        """Tell whether a name is one plain name in a shared folder."""
        folder, _, plain = name.partition("/")
        if folder not in self._context.config.shared_folders or "/" in plain:
            return False
        try:
            return checked(name) == name
        except BadNameError:
            return False

    def _send_piece(self, node_id: int, number: int, piece: Piece | None) -> None:
        context = self._context
        size, data = piece if piece is not None else (-1, b"")
        if not context.stopped:
            context.outbox.send(node_id, FrameKind.PIECE, context.term, number, size, data)
