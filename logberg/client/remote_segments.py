"""The segments of one running controller, read by ranges: what a backup is made from.

Rule: all bytes come from one controller, whose list fixes where the log ends. Nothing is verified
here. A controller of a release that doesn't list its segments is refused with a sentence.
"""

from typing import Any, Final

from ledger.chain import LogMark
from logberg.client.asking import Asking
from logberg.client.client_errors import ClientError
from logberg.client.remote_log import Run, Sources
from metadata.errors import ErrorCode
from metadata.messages.quorum import QuorumReply
from metadata.messages.segments import ListSegmentsReply

_PIECE_BYTES: Final = 1024 * 1024


class RemoteSegments:
    """The list of a controller's segments, and their bytes."""

    def __init__(self, client: Asking, url: str, run: Run[Any], deadline_s: float) -> None:
        """Ask the controller for its list. Raises ClientError."""
        self._run = run
        self._sources = Sources(client, "", [url], deadline_s)
        self.location = url
        listed = self._list({})
        self.cluster_id = listed.cluster_id
        self.segments = [(each.base_offset, each.size) for each in listed.segments]
        while listed.more:
            listed = self._list({"fromBase": str(self.segments[-1][0] + 1)})
            self.segments += [(each.base_offset, each.size) for each in listed.segments]
        # The log may grow between two parts of the list. Only the newest segment grows, and it is
        # in the last part: so that part has its size, and the mark that belongs to it.
        self.end = LogMark(
            listed.log_end, bytes.fromhex(listed.hash), listed.epoch, listed.timestamp_ms
        )

    def quorum(self) -> QuorumReply:
        """Return the voters, as this controller knows them. Raises ClientError."""
        found: QuorumReply = self._run(self._sources.ask("/v1/quorum", QuorumReply, {}))
        return found

    @property
    def sources(self) -> Sources:
        """The same controller, to ask it for its snapshots."""
        return self._sources

    def read(self, base_offset: int, position: int, length: int) -> bytes:
        """Return up to `length` bytes of a segment. Raises ClientError."""
        end = position + min(length, _PIECE_BYTES) - 1
        span = {"range": f"bytes={position}-{end}"}
        found: bytes = self._run(self._sources.ask(f"/v1/segments/{base_offset}", bytes, {}, span))
        return found

    def _list(self, query: dict[str, str]) -> ListSegmentsReply:
        try:
            found: ListSegmentsReply = self._run(
                self._sources.ask("/v1/segments", ListSegmentsReply, query)
            )
        except ClientError as error:
            if error.code != ErrorCode.NOT_FOUND:
                raise
            raise ClientError(
                error.code,
                f"{self.location} is of a release that sends no segments: upgrade it, or back up "
                "its folder with --from-folder",
                error.status,
                error.reply,
            ) from None
        return found
