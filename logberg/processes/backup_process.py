"""Makes a node's scheduled backups in a process of its own: `logberg backup create`.

Rule: the process reads the node's own folder and asks nobody. It runs at the lowest priority, so
the node's loop, its syncs and its heartbeats go first. It ends with the node.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec
from structlog.typing import FilteringBoundLogger

from controller.controller import Controller
from logberg.backups.schedule import BackupSchedule, Looked, OnLooked, rank_of
from logberg.processes.settings.controller_settings import BackupSettings, ControllerSettings
from logberg.processes.settings.settings_files import resolve
from runtime.clock import Clock
from runtime.metrics import Registry
from runtime.parent_death import die_with

_NICE: Final = 19
_END_S: Final = 5.0
"""So long a process may take to remove what it has written."""
_PROGRAM: Final = (sys.executable, "-m", "logberg")


class _Backup(msgspec.Struct, rename="camel"):
    name: str
    made_at_ms: int
    log_end: int
    bytes: int


class _Said(msgspec.Struct):
    """What `logberg backup create --output json` prints."""

    made: bool
    removed: list[str]
    backup: _Backup


class BackupProcess:
    """`logberg.backups.schedule.Looking` by a child process."""

    def __init__(self, settings: BackupSettings, where: str, folder: Path) -> None:
        """`folder`: the node's. `where`: a path or URL."""
        self._settings = settings
        self._where = where
        self._folder = folder
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._stopped = False

    def start(self, older_than_s: float, on_looked: OnLooked) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(older_than_s, on_looked))

    def stop(self) -> None:
        self._stopped = True
        # Python's KeyboardInterrupt: the command removes what it has written.
        self._signal(signal.SIGINT)

    async def ended(self) -> None:
        """Wait until nothing runs; after a few seconds, end what runs by force.

        A place that doesn't answer any more must not keep the node from stopping.
        """
        if self._task is None:
            return
        for sent in (signal.SIGKILL, None):
            _, waiting = await asyncio.wait({self._task}, timeout=_END_S)
            if not waiting:
                return
            if sent is not None:
                self._signal(sent)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def _run(self, older_than_s: float, on_looked: OnLooked) -> None:
        try:
            found = await self._look(older_than_s)
        except Exception as error:  # noqa: BLE001 - without an answer there would be no other look
            found = f"the backup's process failed: {error!r}"
        on_looked(found)

    async def _look(self, older_than_s: float) -> Looked | str:
        parent = os.getpid()

        def begin() -> None:
            die_with(parent)
            os.nice(_NICE)

        self._process = await asyncio.create_subprocess_exec(
            *_PROGRAM,
            *("backup", "create", "--from-folder", str(self._folder)),
            *("--if-older-than", str(older_than_s), "--keep", str(self._settings.keep)),
            *("--output", "json"),
            # The place may have keys in its URL, and arguments of processes are seen by all.
            env={**os.environ, "LOGBERG_BACKUP_TO": self._where},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=begin,
        )
        if self._stopped:
            self._signal(signal.SIGINT)
        out, err = await self._process.communicate()
        if self._process.returncode != 0:
            last = err.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            return _message(err) or last[0]
        said = msgspec.json.decode(out, type=_Said)
        one = said.backup
        return Looked(
            one.name, one.made_at_ms, one.log_end, one.bytes, said.made, tuple(said.removed)
        )


def _message(err: bytes) -> str:
    """Return the message of the error that a command printed as JSON; empty: it is none."""
    start = err.find(b"{")
    try:
        said = msgspec.json.decode(err[start:]) if start >= 0 else None
    except msgspec.DecodeError:
        return ""
    return str(said.get("message", "")) if isinstance(said, dict) else ""


class ScheduledBackups:
    """A controller's schedule, and the process that does its work."""

    def __init__(
        self,
        settings: ControllerSettings,
        backups: BackupSettings,
        config_file: Path,
        controller: Controller,
        clock: Clock,
        registry: Registry,
        log: FilteringBoundLogger,
    ) -> None:
        where = backups.where
        if "://" not in where:
            where = str(resolve(config_file, where))
        self._process = BackupProcess(backups, where, resolve(config_file, settings.data))

        def rank() -> int | None:
            quorum = controller.quorum
            voters = [voter.node_id for voter in quorum.voters()]
            return rank_of(settings.node_id, quorum.leader_and_epoch().leader, voters)

        self._schedule = BackupSchedule(
            clock, backups.every_ms / 1000, rank, self._process, registry, log
        )

    def begin(self) -> None:
        """Begin to look."""
        self._schedule.begin()

    async def stop(self) -> None:
        """Stop, and wait for the process that may run."""
        self._schedule.stop()
        await self._process.ended()
