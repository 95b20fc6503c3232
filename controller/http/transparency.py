"""Serves what others check the log with: the signed head, the tree's tiles, and batch proofs.

Rule: every node answers, and nobody needs to believe it. Paths and contents of the head and the
tiles are those of C2SP's tlog-tiles, below the controller's own URL.
"""

from collections.abc import Callable

from controller.http.fetch_content import unreadable
from controller.http.queries import whole_number
from controller.http.route import NUMBER_MAX
from controller.leader.changes import answered_end
from controller.signing.batch_proofs import batch_proof
from controller.signing.heads import SignedHead
from controller.signing.signing import HeadSigning
from controller.storage.history import ReadableHistory
from controller.storage.tree_keeping import TreeKeeping
from ledger.batch_tree import BatchTree
from ledger.errors import LedgerError, SegmentAwayError
from ledger.merkle.tiles import WIDTH, TreeTile
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import HEAD_KEYS_HEADER, BatchProofReply
from metadata.uuids import UuidError, parse_uuid
from runtime.http.requests import Reply, Request

_REQUEST_ID_LEAST = 22
"""Signs of a request id; an offset has fewer."""


class Transparency:
    """Answers requests for heads, tiles and batch proofs."""

    def __init__(
        self,
        cluster_id: str,
        signing: Callable[[], HeadSigning | None],
        keeping: TreeKeeping | None,
        history: ReadableHistory,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._cluster_id = cluster_id
        self._signing = signing
        self._keeping = keeping
        self._history = history
        self._image = image

    def head(self) -> Reply:
        """Return the newest signed head. Raises LogbergError."""
        newest, signing = self._newest(), self._signing()
        keys = () if signing is None else signing.signer_keys
        headers = {
            "content-type": "text/plain; charset=utf-8",
            "cache-control": "no-cache",
            # For whoever sees the cluster for the first time, and believes it this once.
            HEAD_KEYS_HEADER: ",".join(key.text for key in keys),
        }
        return Reply(200, newest.note.encode(), headers)

    def tile(self, path: str) -> Reply:
        """Return a tile. Raises LogbergError, OSError."""
        try:
            tile = TreeTile.parse(path)
        except LedgerError as error:
            raise LogbergError(ErrorCode.NOT_FOUND, str(error)) from None
        tree = self._tree()
        if not tile.lies_in(tree.size):
            raise LogbergError(
                ErrorCode.NOT_FOUND, f"the tree of {tree.size} batches has no {tile.path}"
            )
        headers = {"content-type": "application/octet-stream"}
        if tile.width == WIDTH:
            headers["cache-control"] = "max-age=31536000, immutable"
        try:
            return Reply(200, tree.tile(tile), headers)
        except LedgerError as error:
            raise self._damaged(error) from None

    def proof(self, request: Request, text: str, on_reply: "OnProof") -> None:
        """Answer with a batch proof, now or once the archive's copy is here.

        `text`: an offset, or the id of a request. Raises LogbergError, OSError.
        """
        offset = self._offset_of(text)
        older = whole_number(request.query, "olderSize", 0)
        newest, tree = self._newest(), self._tree()

        def recalled(why: str) -> None:
            if why:
                on_reply(LogbergError(ErrorCode.STORAGE_ERROR, why))
                return
            try:
                self.proof(request, text, on_reply)
            except LogbergError as error:
                on_reply(error)
            except OSError as error:
                on_reply(unreadable(error))

        try:
            made = batch_proof(self._cluster_id, tree, newest, offset, older, self._read)
        except SegmentAwayError as away:
            self._history.recall(away.offset, recalled)
        except LedgerError as error:
            raise self._damaged(error) from None
        else:
            on_reply(made)

    def _offset_of(self, text: str) -> int:
        if text.isdecimal() or len(text) < _REQUEST_ID_LEAST:
            return whole_number({"offset": text}, "offset", NUMBER_MAX)
        try:
            end = answered_end(self._image(), parse_uuid(text))
        except UuidError as error:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST, f"{error}: give an offset or a request id"
            ) from None
        if end is None:
            raise LogbergError(
                ErrorCode.NOT_FOUND,
                f"this controller remembers no request {text}: it remembers requests of a day. "
                "`logberg audit log --request-id` finds the offset of older ones in a log",
            )
        return end - 1

    def _read(self, base: int) -> bytes:
        return self._history.read_from(base, 1, NUMBER_MAX)[0]

    def _newest(self) -> SignedHead:
        signing = self._signing()
        if signing is None:
            raise LogbergError(ErrorCode.NOT_FOUND, "this controller has no key to sign heads")
        if signing.contradiction:
            raise LogbergError(ErrorCode.STORAGE_ERROR, signing.contradiction)
        if signing.newest is None:
            raise LogbergError(ErrorCode.NOT_FOUND, "there is no signed head yet; ask again later")
        return signing.newest

    def _tree(self) -> BatchTree:
        tree = None if self._keeping is None else self._keeping.tree
        if tree is None:
            raise LogbergError(
                ErrorCode.NOT_FOUND, "this controller has no tree of the whole log; ask another"
            )
        return tree

    def _damaged(self, error: LedgerError) -> LogbergError:
        if self._keeping is not None:
            self._keeping.rebuild()
        return LogbergError(
            ErrorCode.STORAGE_ERROR, f"the tree here is damaged and is made again: {error}"
        )


OnProof = Callable[[BatchProofReply | LogbergError], None]
