"""Runs a cluster on this machine until Ctrl-C, and shows it meanwhile: for `up` and `kafka up`.

Rule: a process that ends while the others run is reported and not restarted, so that a user who
killed it by hand can watch how the others react.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live

from logberg.cli.output import drawn, say
from logberg.client.client import LogbergClient
from logberg.client.cluster_view import ClusterView, observe
from logberg.commands.status import tables
from logberg.local.cluster_file import ClusterFile, LocalClusterError

_POLL_S = 0.5


class ShownProcess(Protocol):
    """One process of a cluster."""

    @property
    def name(self) -> str:
        """Its name, for people."""

    @property
    def pid(self) -> int:
        """Its process id, once it was started."""

    @property
    def exit_code(self) -> int | None:
        """Its exit code once it has ended; negative for a signal."""

    def obituary(self) -> str:
        """Describe how it ended."""


class ShownCluster(Protocol):
    """A cluster in a folder; it is prepared."""

    @property
    def folder(self) -> Path:
        """The folder of everything."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""

    @property
    def resumed(self) -> bool:
        """Whether the folder held the cluster before."""

    @property
    def file(self) -> ClusterFile:
        """What cluster.json says."""

    @property
    def brokers(self) -> Mapping[int, Any]:
        """The brokers, by id."""

    @property
    def controller_urls(self) -> list[str]:
        """URLs of all controllers."""

    @property
    def children(self) -> Sequence[ShownProcess]:
        """All processes."""

    def check_alive(self) -> None:
        """Raise LocalClusterError for a process that ended unexpectedly."""

    def write_cluster_file(self) -> None:
        """Write cluster.json with what runs now."""

    def stop(self) -> list[str]:
        """Stop the brokers, then the controllers. Returns the names of the killed."""


class Running:
    """What a start may look at while it waits."""

    def __init__(
        self, cluster: ShownCluster, client: LogbergClient, stop: asyncio.Event, limit_s: float
    ) -> None:
        self.client = client
        self._cluster = cluster
        self._stop = stop
        self._until = time.monotonic() + limit_s
        self._limit_s = limit_s

    @property
    def stopping(self) -> bool:
        """Whether the user asked to stop."""
        return self._stop.is_set()

    async def ready(self, also: Callable[[], bool] = lambda: True) -> None:
        """Wait until all answer, all brokers are online, and `also` holds.

        Returns early if the user asks to stop. Raises LocalClusterError.
        """
        while not self.stopping:
            self._cluster.check_alive()
            found = await observe(self.client, self._cluster.controller_urls)
            if found.is_ready(len(self._cluster.brokers)) and also():
                return
            if time.monotonic() > self._until:
                raise LocalClusterError(
                    f"Not ready after {self._limit_s:.0f} s: {_summary(found)}. "
                    f"The processes' output is in {self._cluster.folder / 'output'}."
                )
            await _pause(self._stop, 0.1)


async def run_until_stopped(
    cluster: ShownCluster,
    start: Callable[[Running], Awaitable[None]],
    announce: Callable[[], None],
    ready_limit_s: float,
) -> None:
    """Run a cluster: `start` starts it and waits, `announce` says that it is ready.

    Raises LocalClusterError.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    verb = "resuming" if cluster.resumed else "starting"
    say(f"{verb} cluster {cluster.cluster_id} in {cluster.folder}")
    try:
        async with LogbergClient(cluster.controller_urls, cluster.file.access()) as client:
            await start(Running(cluster, client, stop, ready_limit_s))
            if not stop.is_set():
                cluster.write_cluster_file()
                announce()
                await _show(cluster, client, stop)
    finally:
        # The reader of our output may be gone; stop the processes in order even then.
        with suppress(BrokenPipeError):
            say("stopping brokers, then controllers …")
        forced = await asyncio.to_thread(cluster.stop)
        cluster.write_cluster_file()
        with suppress(BrokenPipeError):
            say("stopped" + (f" ({', '.join(forced)} by force)" if forced else " cleanly"))


async def _show(cluster: ShownCluster, client: LogbergClient, stop: asyncio.Event) -> None:
    urls = tuple(cluster.controller_urls)
    told: set[int] = set()
    if sys.stdout.isatty():
        screen = Console(highlight=False)
        with Live(console=screen, auto_refresh=False, transient=True) as live:
            while not stop.is_set():
                # Above the live table, where it stays.
                print_ended(cluster, told, lambda text: screen.print(drawn(text), style="bold red"))
                live.update(Group(*map(drawn, tables(await observe(client, urls)))), refresh=True)
                await _pause(stop, _POLL_S)
        return
    last = ""
    while not stop.is_set():
        print_ended(cluster, told, say)
        line = _summary(await observe(client, urls))
        if line != last:
            say(line)
            last = line
        await _pause(stop, _POLL_S)


def print_ended(cluster: ShownCluster, told: set[int], say: Callable[[str], None]) -> None:
    """Report each process that has ended, once. The others keep running."""
    fallen = [child for child in cluster.children if child.exit_code is not None]
    new = [child for child in fallen if child.pid not in told]
    if new:
        # Before the message, so that its reader finds the current file.
        cluster.write_cluster_file()
    for child in new:
        told.add(child.pid)
        how, *its_last_lines = child.obituary().splitlines()
        say(f"{how} The others keep running. To restart it, press Ctrl-C and run `up` again.")
        for line in its_last_lines:
            say(f"  {child.name}: {line}")


def _summary(found: ClusterView) -> str:
    """One line, without what changes all the time."""
    controllers = ", ".join(
        f"{view.name} {'active' if view.active else view.role}" for view in found.controllers
    )
    brokers = ", ".join(f"{broker.broker_id} {broker.state}" for broker in found.brokers)
    if not brokers:
        brokers = "not known" if found.known_brokers is None else "none"
    return f"epoch {found.epoch}; controllers: {controllers}; brokers: {brokers}"


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
