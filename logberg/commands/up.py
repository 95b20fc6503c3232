"""`logberg up`: a cluster on this machine until Ctrl-C."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
from rich.console import Console, Group
from rich.live import Live

from logberg.cli.default_folder import DEFAULT_FOLDER, or_old_folder
from logberg.cli.failure import Failure
from logberg.cli.feature_levels import first_levels
from logberg.cli.output import drawn, say
from logberg.client.client import LogbergClient
from logberg.client.cluster_view import ClusterView, observe
from logberg.commands.status import tables
from logberg.local.cluster_file import LocalClusterError
from logberg.local.local_cluster import CONTROLLERS, LocalCluster

_READY_LIMIT_S = 60.0
_POLL_S = 0.5


@click.command("up")
@click.option(
    "--controllers", type=click.Choice(CONTROLLERS), help="Number of controllers. [default: 3]"
)
@click.option("--brokers", type=click.IntRange(0, 50), help="Number of broker agents. [default: 3]")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_FOLDER,
    show_default=True,
    callback=or_old_folder,
    help="Folder of the cluster. `up` resumes a cluster that it finds there.",
)
@click.option(
    "--port-base",
    type=click.IntRange(1024, 60_000),
    help="First of the ports that the cluster uses. [default: 19000]",
)
@click.option(
    "--token",
    "tokens",
    multiple=True,
    metavar="PRINCIPAL",
    help="Write a token for this principal. Broker:7 gets tokens/Broker-7.token. Repeatable.",
)
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="FEATURE=LEVEL",
    callback=first_levels,
    help="Level at which a new cluster begins; by default the newest. Repeatable.",
)
def command(
    controllers: int | None,
    brokers: int | None,
    data: Path,
    port_base: int | None,
    tokens: tuple[str, ...],
    features: dict[str, int],
) -> None:
    """Start controllers and broker agents on this machine, and show them until Ctrl-C.

    A new folder becomes a new cluster; no other command has to run first. Ctrl-C stops the brokers
    in order, then the controllers.
    """
    try:
        cluster = LocalCluster(
            data, controllers, brokers, port_base, tokens=tokens, features=features
        )
        cluster.prepare()
        asyncio.run(_run(cluster))
    except LocalClusterError as error:
        first, *more = str(error).splitlines()
        raise Failure(first, more=more) from None


async def _run(cluster: LocalCluster) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    verb = "resuming" if cluster.resumed else "starting"
    say(f"{verb} cluster {cluster.cluster_id} in {cluster.folder}")
    try:
        for child in cluster.children:
            child.start()
        async with LogbergClient(cluster.controller_urls, cluster.file.access()) as client:
            await _until_ready(cluster, client, stop)
            if not stop.is_set():
                cluster.write_cluster_file()
                _announce(cluster)
                await _show(cluster, client, stop)
    finally:
        # The reader of our output may be gone; stop the processes in order even then.
        with suppress(BrokenPipeError):
            say("stopping brokers, then controllers …")
        forced = await asyncio.to_thread(cluster.stop)
        cluster.write_cluster_file()
        with suppress(BrokenPipeError):
            say("stopped" + (f" ({', '.join(forced)} by force)" if forced else " cleanly"))


async def _until_ready(cluster: LocalCluster, client: LogbergClient, stop: asyncio.Event) -> None:
    until = time.monotonic() + _READY_LIMIT_S
    while not stop.is_set():
        cluster.check_alive()
        found = await observe(client, cluster.controller_urls)
        if found.is_ready(len(cluster.brokers)):
            return
        if time.monotonic() > until:
            raise LocalClusterError(
                f"Not ready after {_READY_LIMIT_S:.0f} s: {_summary(found)}. "
                f"The processes' output is in {cluster.folder / 'output'}."
            )
        await _pause(stop, 0.1)


def _announce(cluster: LocalCluster) -> None:
    say(
        f"ready: {len(cluster.controllers)} controllers, {len(cluster.brokers)} brokers; "
        f"{cluster.folder / 'cluster.json'} says where. In another terminal: logberg status"
    )


async def _show(cluster: LocalCluster, client: LogbergClient, stop: asyncio.Event) -> None:
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


def print_ended(cluster: LocalCluster, told: set[int], say: Callable[[str], None]) -> None:
    """Report each process that has ended, once. The others keep running.

    `up` doesn't restart it: a user who killed it by hand can watch how the others react.
    """
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
