"""`logberg doctor`: is the cluster well, and what is to be done."""

import time
from pathlib import Path

import click

from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.failure import Failure
from logberg.cli.output import print_json, say, show, styled, table
from logberg.client.access import Access
from logberg.client.client import LogbergClient
from logberg.commands.audit.failures import failing
from logberg.operating.check_words import CheckState, NodeCheck
from logberg.operating.checks import check_all
from logberg.operating.folder_checks import check_folder
from logberg.operating.node_report import ClusterReport, gather


@click.command("doctor")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="URL",
    help="Also check the broker's agent at this URL; several times for several.",
)
@click.option(
    "--folder",
    "from_folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Check this folder on this machine instead: room, syncs, and the log in it.",
)
@click.option("--quiet", is_flag=True, help="Show only what is to be done.")
@cluster_options
def command(
    *,
    agents: tuple[str, ...],
    from_folder: Path | None,
    quiet: bool,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Check clocks, disks, syncs, certificates, descriptors, releases and the log of all nodes.

    Each finding says what to do. Exit 1 if something has to be done now (act); what may become a
    problem (look) is shown, and leaves the exit code at 0.
    """
    if from_folder is not None:
        with failing():
            checks = list(check_folder(from_folder))
    else:
        report = cluster.ask(lambda client: _gathered(client, cluster, agents))
        checks = check_all(report, time.time())
    shown = [check for check in checks if not quiet or check.state is not CheckState.OK]
    if output == "json":
        print_json({"checks": shown, "act": _count(checks, CheckState.ACT)})
    else:
        draw(shown, checks)
    if acts := _count(checks, CheckState.ACT):
        raise Failure(f"{acts} of {len(checks)} checks say that something has to be done now")


async def _gathered(
    client: LogbergClient, cluster: ClusterConnection, agents: tuple[str, ...]
) -> ClusterReport:
    if not agents:
        return await gather(client, cluster.urls)
    # An agent is no controller, so no token goes there. It answers /metrics to anybody.
    known = cluster.access
    access = Access(ca=known.ca, cert=known.cert, key=known.key)
    async with LogbergClient(agents, access, cluster.deadline_s) as of_agents:
        return await gather(client, cluster.urls, of_agents, agents)


def draw(shown: list[NodeCheck], checks: list[NodeCheck]) -> None:
    """Print the findings, and what to do for each that needs it."""
    order = (CheckState.ACT, CheckState.LOOK, CheckState.OK)
    ranked = sorted(shown, key=lambda check: order.index(check.state))
    if ranked:
        rows = [(styled(c.state.value), c.check, c.node, c.found) for c in ranked]
        show(table(["state", "check", "node", "found"], rows), "")
    for check in ranked:
        if check.do:
            say(f"{check.check}, {check.node}: {check.do}")
    counts = ", ".join(f"{_count(checks, state)} {state.value}" for state in order)
    say(f"{len(checks)} checks: {counts}")


def _count(checks: list[NodeCheck], state: CheckState) -> int:
    return sum(check.state is state for check in checks)
