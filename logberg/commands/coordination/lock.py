"""`logberg coordination lock`."""

import sys

import click

from coordination.coordinator import Coordinator
from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.output import print_line, say
from logberg.commands.coordination.coordinator_connection import run_with_coordinator
from logberg.commands.coordination.guarded_command import hold, run_while_held
from logberg.commands.coordination.holding_options import holding_options, waiting_time
from logberg.commands.coordination.signal_routes import SignalRoute


@click.command("lock")
@click.argument("lock")
@holding_options
@click.option("--shared", is_flag=True, help="Hold it together with others that share it.")
@cluster_options
def command(
    *,
    lock: str,
    command_line: tuple[str, ...],
    ttl: float,
    grace: float,
    wait: float,
    shared: bool,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Run COMMAND while this process holds LOCK; without one, hold it until Ctrl-C.

    The exit code is that of COMMAND. If the lock is lost, COMMAND is ended, and the exit code is 1.
    COMMAND finds its fencing token in LOGBERG_FENCING_TOKEN: a store that it writes to should
    refuse a token smaller than the largest that it has seen.
    """

    async def body(coordinator: Coordinator, signals: SignalRoute) -> int:
        wanted = coordinator.lock(lock)
        grant = await wanted.acquire(timeout=waiting_time(wait), shared=shared)
        try:
            if command_line:
                named = {"LOGBERG_LOCK": lock}
                return await run_while_held(grant, command_line, named, grace, signals)
            if output == "json":
                print_line({"lock": lock, "token": grant.token, "sessionId": grant.session.id})
            else:
                say(f"holds lock {lock} with token {grant.token}; Ctrl-C gives it back")
            sys.stdout.flush()
            return await hold(grant, signals)
        finally:
            await grant.drop()

    sys.exit(run_with_coordinator(cluster, ttl, grace, body))
