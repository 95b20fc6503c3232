"""`logberg coordination elect`."""

import os
import socket
import sys

import click

from coordination.coordinator import Coordinator
from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.output import print_line, say
from logberg.commands.coordination.coordinator_connection import run_with_coordinator
from logberg.commands.coordination.guarded_command import hold, run_while_held
from logberg.commands.coordination.holding_options import holding_options, waiting_time
from logberg.commands.coordination.signal_routes import SignalRoute


@click.command("elect")
@click.argument("election")
@holding_options
@click.option("--id", "id_", help="The candidate's id. Default: the host's name and a number.")
@click.option("--as-data", default="", help="Text that others see beside the id.")
@cluster_options
def command(
    *,
    election: str,
    command_line: tuple[str, ...],
    ttl: float,
    grace: float,
    wait: float,
    id_: str | None,
    as_data: str,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Run COMMAND while this process leads ELECTION; without one, lead until Ctrl-C.

    Candidates lead in the order in which they came. The exit code is that of COMMAND. If the
    leadership is lost, COMMAND is ended, and the exit code is 1. COMMAND finds its fencing token in
    LOGBERG_FENCING_TOKEN.
    """
    candidate = id_ or f"{socket.gethostname()}-{os.getpid()}"

    async def body(coordinator: Coordinator, signals: SignalRoute) -> int:
        wanted = coordinator.election(election)
        term = await wanted.acquire(candidate, as_data, timeout=waiting_time(wait))
        try:
            if command_line:
                named = {"LOGBERG_ELECTION": election, "LOGBERG_CANDIDATE": candidate}
                return await run_while_held(term, command_line, named, grace, signals)
            if output == "json":
                facts = {"election": election, "id": candidate, "token": term.token}
                print_line({**facts, "sessionId": term.session.id})
            else:
                say(f"{candidate} leads {election} with token {term.token}; Ctrl-C resigns")
            sys.stdout.flush()
            return await hold(term, signals)
        finally:
            await wanted.drop(term)

    sys.exit(run_with_coordinator(cluster, ttl, grace, body))
