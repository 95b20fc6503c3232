"""Asks a log for a past state, in the place of the controllers: `--at` of the commands that read.

Rule: the command and its answer are the same. The audit replays the log up to the moment, and the
controllers' own functions answer from that image (`controller.http.past_reads`). The log lies in a
folder, or running controllers send it, from the newest snapshot before the moment on.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from audit.places.replicas import NoLogError, Replica, one_replica
from audit.places.tree_disk import TreeDisk
from audit.questions.state import state_at
from audit.reading.moments import MomentError, offset_of, time_ms
from audit.reading.readable_log import ReadableLog
from controller.http.past_reads import read_past, read_past_log
from ledger.errors import LedgerError
from logberg.cli.connection_options import ClusterConnection
from logberg.cli.failure import Failure
from logberg.cli.output import note
from logberg.cli.progress import OnStep, progress_of_steps
from logberg.client.access import Access
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.remote_log import RemoteLog, find_sources
from logberg.client.remote_snapshots import RemoteSnapshots
from logberg.processes.settings.server_properties.syntax import read_properties
from logberg.processes.settings.settings_files import SettingsError
from metadata.codec import RecordDecodeError
from metadata.configs.effective import OwnConfigs
from metadata.errors import LogbergError
from metadata.image import MetadataImage, ReplayError
from metadata.messages.errors import error_reply
from metadata.messages.log import LogReply
from runtime.loop.collection import resting
from runtime.sockets.tls import TlsFilesError
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
    """A node's folder, the folder of `logberg up`, an archive or a URL, as for `logberg audit`.
    Empty: the controllers at `urls` send their log."""
    at: str = ""
    """An offset, or a time."""
    server_properties: Path | None = None
    """The controllers' own settings at that time, if somebody has kept them."""

    def ask(
        self, question: Callable[[LogbergClient], Awaitable[T]], repeats: str | None = None
    ) -> T:
        """Replay the log, and let the question ask the state. Raises Failure."""
        own = None if self.server_properties is None else _own_settings(self.server_properties)
        with asyncio.Runner() as runner:
            try:
                with self._client(runner) as client:
                    past = self._replayed(runner, client, own)
                    return self._asked(lambda: runner.run(_conversation(question, past)))
            except ClientError as error:
                raise self.failure(error) from None
            except _EXPECTED as error:
                raise Failure(str(error)) from None

    @contextmanager
    def _client(self, runner: asyncio.Runner) -> Iterator[LogbergClient | None]:
        """Yield a client of the controllers; None if the log is in a folder."""
        if self.where:
            yield None
            return
        client = LogbergClient(self.urls, self.access, self.deadline_s)
        try:
            runner.run(client.__aenter__())
        except TlsFilesError as error:
            raise self._bad_tls_files(error) from None
        try:
            yield client
        finally:
            runner.run(client.__aexit__(None, None, None))

    def _replayed(
        self, runner: asyncio.Runner, client: LogbergClient | None, own: OwnConfigs | None
    ) -> "_PastClient":
        with resting(), progress_of_steps("reading the log") as on_step:
            if client is None:
                replica = one_replica(self.where)
                reader: ReadableLog = replica.reader()
                image = self._image(replica, reader, on_step)
                return _PastClient(image, own, _log_of(reader, image))
            sources = runner.run(find_sources(client, self.urls, self.deadline_s))
            remote = RemoteLog(sources, runner.run)
            snapshots = RemoteSnapshots(
                sources,
                runner.run,
                lambda done, size: on_step("fetching a snapshot", done, size),
            )
            replica = Replica(sources.location, sources.location, TreeDisk(snapshots))
            image = self._image(replica, remote, on_step)
        if snapshots.unlisted:
            note(
                "these controllers don't list their snapshots (release 0.1), so the log was read "
                "from its beginning"
            )

        async def words(offset: int) -> LogReply:
            return await remote.words(offset, image.offset)

        return _PastClient(image, own, words)

    def _image(self, replica: Replica, reader: ReadableLog, on_step: OnStep) -> MetadataImage:
        """Replay up to the moment. Raises MomentError and what reading a log raises."""
        _check_not_in_the_future(reader, self.at)
        state = state_at(
            replica,
            offset_of(reader, self.at),
            reader=reader,
            with_hash=False,
            on_progress=lambda done, total: on_step("replaying", done, total),
        )
        for said in state.notes:
            note(said)
        return state.image


def ask_image(image: MetadataImage, question: Callable[[LogbergClient], Awaitable[T]]) -> T:
    """Let a question ask an image that has no log beside it. Raises ClientError."""

    async def nothing(offset: int) -> LogReply:
        raise AssertionError(f"the log was asked from offset {offset} on")

    with asyncio.Runner() as runner:
        return runner.run(_conversation(question, _PastClient(image, None, nothing)))


def _check_not_in_the_future(reader: ReadableLog, at: str) -> None:
    """Raise MomentError for a time that has not come, by this machine's clock and by the log."""
    text = at.strip()
    if text.isdecimal() or not text[:1].isdigit():
        return
    moment_ms = time_ms(text)
    if moment_ms > time.time() * 1_000 and moment_ms > reader.last_timestamp_ms():
        raise MomentError(f"{text} is in the future: what the state will be then is in no log.")


def _own_settings(path: Path) -> OwnConfigs:
    """Read a controller's server.properties. Raises Failure."""
    try:
        given = read_properties(path).values
    except SettingsError as error:
        raise Failure(str(error)) from None
    values = {key: one.value for key, one in given.items()}
    number = values.get("node.id", "-1").strip()
    return OwnConfigs(values, int(number) if number.lstrip("-").isdecimal() else -1)


def _log_of(reader: ReadableLog, image: MetadataImage) -> Callable[[int], Awaitable[LogReply]]:
    async def words(offset: int) -> LogReply:
        return msgspec.json.decode(read_past_log(reader, image, offset), type=LogReply)

    return words


async def _conversation(
    question: Callable[[LogbergClient], Awaitable[T]], client: LogbergClient
) -> T:
    return await question(client)


class _PastClient(LogbergClient):
    """Answers reads from one image, and reads of the log up to that image."""

    def __init__(
        self,
        image: MetadataImage,
        own: OwnConfigs | None,
        log: Callable[[int], Awaitable[LogReply]],
    ) -> None:
        super().__init__(("http://the-past.invalid",), Access())
        self._image = image
        self._own = own
        self._log = log

    async def get(self, path: str, reply: type[T], query: Mapping[str, str] | None = None) -> T:
        if path == "/v1/log":
            answer: Any = await self._log(int((query or {}).get("offset", "0")))
            return answer  # type: ignore[no-any-return]
        try:
            said = read_past(self._image, path, query or {}, self._own)
            return msgspec.json.decode(said, type=reply)
        except LogbergError as error:
            refused = error_reply(error)
            raise ClientError(refused.code, refused.message, error.code.status, refused) from None
