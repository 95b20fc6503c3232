"""Asks a log for a past state, in the place of the controllers: `--at` of the commands that read.

Rule: the command and its answer are the same. The audit replays the log up to the moment, and the
controllers' own functions answer from that image (`controller.http.past_reads`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import msgspec

from audit.places.replicas import NoLogError, one_replica
from audit.questions.state import state_at
from audit.reading.moments import MomentError, offset_of
from controller.http.past_reads import read_past
from ledger.errors import LedgerError
from logberg.cli.connection_options import ClusterConnection
from logberg.cli.failure import Failure
from logberg.client.access import Access
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from metadata.codec import RecordDecodeError
from metadata.errors import LogbergError
from metadata.image import MetadataImage, ReplayError
from metadata.messages.errors import error_reply
from snapshots.errors import CheckpointError

T = TypeVar("T")
_EXPECTED = (
    NoLogError,
    MomentError,
    LedgerError,
    CheckpointError,
    RecordDecodeError,
    ReplayError,
    OSError,
)


class PastState(ClusterConnection, frozen=True):
    """A cluster as its log says that it was."""

    where: str = ""
    """A node's folder, the folder of `logberg up`, an archive or a URL, as for `logberg audit`."""
    at: str = ""
    """An offset, or a time."""

    def ask(self, question: Callable[[LogbergClient], Awaitable[T]]) -> T:
        """Replay the log, and let the question ask the state. Raises Failure."""
        try:
            replica = one_replica(self.where)
            reader = replica.reader()
            offset = offset_of(reader, self.at)
            state = state_at(replica, offset, reader=reader, with_hash=False)
        except _EXPECTED as error:
            raise Failure(str(error)) from None
        return self._asked(lambda: asyncio.run(_conversation(question, state.image)))


async def _conversation(
    question: Callable[[LogbergClient], Awaitable[T]], image: MetadataImage
) -> T:
    return await question(_PastClient(image))


class _PastClient(LogbergClient):
    """Answers reads from one image."""

    def __init__(self, image: MetadataImage) -> None:
        super().__init__(("http://the-past.invalid",), Access())
        self._image = image

    async def get(self, path: str, reply: type[T], query: Mapping[str, str] | None = None) -> T:
        try:
            return msgspec.json.decode(read_past(self._image, path, query or {}), type=reply)
        except LogbergError as error:
            said = error_reply(error)
            raise ClientError(said.code, said.message, error.code.status, said) from None
