"""`logberg quorum add`, `promote`, `remove`, `replace`, `move`, `transfer`: who votes and leads.

ADR 0081 has the rules of changes.

Rule: a controller decides, and its refusal is what the command ends with. Only "not yet" is waited
for: a new voter has to catch up first, and a change before must be committed.
"""

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    cluster_options,
    print_change,
)
from logberg.cli.output import note, print_json, say
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.cluster_view import is_leaders
from logberg.commands.asking_patiently import POLL_S, patiently
from logberg.commands.quorum_view import runs, view_of
from logberg.commands.voter_replacing import Replacing
from metadata.errors import ErrorCode
from metadata.messages.quorum import ChangeVotersReply, VoterAction

_wait_option = click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to wait until the node has caught up, and until a change before is committed.",
)
_directory_option = click.option(
    "--directory",
    "directory_id",
    default="",
    metavar="ID",
    help="The id of its folder, as `quorum status` shows it. Refused if it is another one.",
)


class _Address(click.ParamType[tuple[str, int]]):
    name = "host:port"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        host, _, port = str(value).rpartition(":")
        if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 2**16:
            self.fail(f"{value!r} is no address: write HOST:PORT")
        return host.strip("[]"), int(port)


@click.command("add")
@click.argument("node", type=click.IntRange(min=0))
@_directory_option
@click.option(
    "--listens",
    type=_Address(),
    default=("", 0),
    metavar="HOST:PORT",
    help="Where it listens for controllers, if the others' configuration doesn't name it.",
)
@_wait_option
@change_options
def add(
    *,
    node: int,
    directory_id: str,
    listens: tuple[str, int],
    wait_s: float,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Let controller NODE vote, once it has caught up.

    It runs already, as an observer. Adding a voter that is there changes nothing.
    """
    reply = _changed(
        cluster, wait_s, VoterAction.ADD, node, directory_id, listens, **change.arguments()
    )
    print_change(reply, output, f"controller {node} votes. {_voters(reply)}")


@click.command("promote")
@click.argument("node", type=click.IntRange(min=0))
@_directory_option
@_wait_option
@change_options
def promote(
    *,
    node: int,
    directory_id: str,
    wait_s: float,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Let the standing observer NODE vote, once it has caught up.

    Its role in the files says only how it begins: it votes from now on, also after a restart.
    """
    reply = _changed(cluster, wait_s, VoterAction.PROMOTE, node, directory_id, **change.arguments())
    print_change(reply, output, f"controller {node} votes. {_voters(reply)}")


@click.command("remove")
@click.argument("node", type=click.IntRange(min=0))
@_directory_option
@_wait_option
@change_options
def remove(
    *,
    node: int,
    directory_id: str,
    wait_s: float,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Let controller NODE vote no more. Its process may go on as an observer.

    A majority of the others must hold all that is committed. If NODE leads, another voter takes
    over first.
    """

    async def removed(client: LogbergClient) -> ChangeVotersReply:
        def ask() -> Awaitable[ChangeVotersReply]:
            return client.change_voters(
                VoterAction.REMOVE, node, directory_id, **change.arguments()
            )

        try:
            return await patiently(ask, wait_s)
        except ClientError as error:
            may_lead = error.code == ErrorCode.INVALID_REQUEST and not change.dry_run
            if not (may_lead and await _leads_elsewhere(client, cluster.urls, node, wait_s)):
                raise
        return await patiently(ask, wait_s)

    reply = cluster.ask(removed)
    print_change(reply, output, f"controller {node} votes no more. {_voters(reply)}")


@click.command("move")
@click.argument("node", type=click.IntRange(min=0))
@click.option(
    "--to",
    "place",
    type=_Address(),
    required=True,
    metavar="HOST:PORT",
    help="Where it will listen for controllers.",
)
@_directory_option
@_wait_option
@change_options
def move(
    *,
    node: int,
    place: tuple[str, int],
    directory_id: str,
    wait_s: float,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Let the others look for voter NODE at another address, and then restart it there.

    Its addresses for HTTP and Kafka need no command: it registers them itself when it starts.
    """
    reply = _changed(
        cluster, wait_s, VoterAction.MOVE, node, directory_id, place, **change.arguments()
    )
    print_change(
        reply,
        output,
        f"the controllers look for controller {node} at {place[0]}:{place[1]} (offset "
        f"{reply.offset}). Write the address into its own file and restart it",
    )


@click.command("replace")
@click.argument("node", type=click.IntRange(min=0))
@_wait_option
@click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing.")
@click.option("--reason", default="", help="Why you make this change. The log keeps the text.")
@cluster_options
def replace(
    *,
    node: int,
    wait_s: float,
    dry_run: bool,
    reason: str,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Let controller NODE vote with the folder that it runs on now, as after a lost disk.

    Two changes: the old folder votes no more, and the new one votes once it has caught up. If the
    command is interrupted, run it again: it goes on where it was.
    """
    done = cluster.ask(
        lambda client: Replacing(client, cluster.urls, node, reason, wait_s).run(dry_run=dry_run)
    )
    if output == "json":
        print_json(done)
    elif dry_run:
        say(f"would {' and then '.join(done.steps)}. Nothing was changed")
    else:
        say(f"controller {node} votes with folder {done.directory_id}")


@click.command("transfer")
@click.argument("node", type=click.IntRange(min=0))
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="Seconds to wait until it leads.",
)
@click.option("--reason", default="", help="Why it shall lead. The log keeps the text.")
@cluster_options
def transfer(
    *, node: int, wait_s: float, reason: str, cluster: ClusterConnection, output: str
) -> None:
    """Let voter NODE lead, as before work on the leader's host.

    The leader waits until NODE holds everything. If NODE doesn't take over within an election
    timeout, the leader goes on.
    """
    epoch = cluster.ask(lambda client: _transferred(client, cluster.urls, node, wait_s, reason))
    if output == "json":
        print_json({"nodeId": node, "leaderEpoch": epoch})
    else:
        say(f"controller {node} leads in epoch {epoch}")


async def _transferred(
    client: LogbergClient, urls: tuple[str, ...], node: int, wait_s: float, reason: str = ""
) -> int:
    """Return the epoch in which a voter leads that was asked to. Raises ClientError."""
    until = time.monotonic() + wait_s
    await patiently(lambda: client.transfer_leadership(node, reason=reason), wait_s)
    while True:
        view = await view_of(client, urls, None)
        if is_leaders(view) and view.node_id == node:
            return view.leader_epoch
        if time.monotonic() >= until:
            leads = "nobody" if view.leader_id is None else f"controller {view.leader_id}"
            raise ClientError(
                ErrorCode.VOTERS_NOT_READY.value,
                f"controller {node} has not taken over; {leads} leads in epoch "
                f"{view.leader_epoch}. See whether it runs and keeps up, and ask again",
            )
        await asyncio.sleep(POLL_S)


async def _leads_elsewhere(
    client: LogbergClient, urls: tuple[str, ...], node: int, wait_s: float
) -> bool:
    """Let another voter take over if this one leads; False: it doesn't, or there is no other.

    Raises ClientError.
    """
    view = await view_of(client, urls, None)
    if not (is_leaders(view) and view.node_id == node):
        return False
    others = [m for m in view.members if m.is_voter and m.node_id != node and runs(m, view)]
    if others:
        best = max(others, key=lambda member: member.match_index)
        note(f"controller {node} leads: controller {best.node_id} takes over first")
        why = f"controller {node} shall be removed"
        await _transferred(client, urls, best.node_id, wait_s, why)
    return bool(others)


def _changed(
    cluster: ClusterConnection,
    wait_s: float,
    action: VoterAction,
    node: int,
    directory_id: str,
    address: tuple[str, int] = ("", 0),
    **change: Any,
) -> ChangeVotersReply:
    """Ask for a change of the voters, and wait while it is too early for it."""
    return cluster.ask(
        lambda client: patiently(
            lambda: client.change_voters(action, node, directory_id, address, **change), wait_s
        )
    )


def _voters(reply: ChangeVotersReply) -> str:
    names = ", ".join(str(voter.node_id) for voter in reply.voters)
    return f"Voters: {names} (offset {reply.offset})"
