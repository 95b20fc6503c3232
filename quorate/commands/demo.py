"""`quorate demo`: the whole story with real processes on loopback."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console

from quorate.client import Access, QuorateClient, read_token
from quorate.demo_story import EXPECTED_ERRORS, Story
from quorate.failure import Failure
from quorate.local_cluster import LocalCluster, LocalClusterError, Timing, free_port_base
from quorate.output import console

_TIMING = Timing(session_ms=3_000, heartbeat_ms=500)


@click.command("demo")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to keep everything. [default: a new folder in the system's temporary folder]",
)
def command(data: Path | None) -> None:
    """Show, with real processes, what Quorate promises; exit 0 only when every claim held.

    Nothing is left running. The folder is kept, with the processes' output.
    """
    folder = data or Path(tempfile.mkdtemp(prefix="quorate-demo-"))
    screen = console()
    began = time.monotonic()
    try:
        cluster = LocalCluster(folder, 3, 3, free_port_base(), _TIMING)
        if cluster.resumed:
            raise Failure(f"{folder} holds a cluster already; name a new folder with --data.")
        cluster.prepare()
        screen.print(f"[bold]Quorate[/bold]: three controllers, three brokers, in {folder}\n")
        proof = asyncio.run(_tell(cluster, screen))
    except LocalClusterError as error:
        raise Failure(str(error)) from None
    except EXPECTED_ERRORS as error:
        screen.print(f"  [red]✗[/red] {error}")
        raise Failure(
            f"the claim above did not hold; the processes' output is in {folder / 'output'}"
        ) from None
    screen.print(f"\n[bold green]proved[/bold green]: {proof}, in {time.monotonic() - began:.0f} s")
    screen.print(f"kept: {folder}. Try next:")
    for line in (
        f"{_own_name()} log dump {folder}",
        f"{_own_name()} log verify {folder}",
        f"{_own_name()} up --data {folder}",
    ):
        screen.print(f"  {line}", soft_wrap=True)


def _own_name() -> str:
    """How to call this command from here: its path, unless it is on PATH."""
    if shutil.which("quorate") is not None:
        return "quorate"
    return os.path.relpath(Path(sys.argv[0]).with_name("quorate"))


async def _tell(cluster: LocalCluster, screen: Console) -> str:
    def say(line: str, seconds: float) -> None:
        screen.print(f"  [green]✓[/green] {line} [dim]({seconds:.1f} s)[/dim]", soft_wrap=True)

    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        access = Access(
            read_token(Path(cluster.file.token_file)),
            cluster.file.ca,
            cluster_id=cluster.cluster_id,
        )
        async with QuorateClient(cluster.controller_urls, access, 20.0, "quorate-demo") as client:
            story = Story(cluster, client, say)
            await story.tell()
            return story.proof
    except asyncio.CancelledError:
        screen.print("  interrupted; stopping everything")
        raise KeyboardInterrupt from None
    finally:
        cluster.stop(5.0)
        cluster.write_cluster_file()
