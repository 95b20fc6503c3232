"""`logberg quorum add`, `remove`, `replace`, `move` and `transfer`: who votes, and who leads.

ADR 0081 has the rules of changes.

Rule: a controller decides, and its refusal is what the command ends with. Only "not yet" is waited
for: a new voter has to catch up first, and a change before must be committed.

`replace` makes two changes, and one of them may be made already when it is asked again. So it looks
at the voters first, each time, and needs no request id.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
import msgspec

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
from logberg.commands.quorum_view import is_leaders, view_of
from metadata.errors import ErrorCode
from metadata.messages.quorum import (
    ChangeVotersReply,
    QuorumMember,
    QuorumReply,
    VoterAction,
)

T = TypeVar("T")

_POLL_S = 0.25
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
        return host, int(port)


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
    reply = cluster.ask(
        lambda client: _patiently(
            lambda: client.change_voters(
                VoterAction.ADD, node, directory_id, listens, **change.arguments()
            ),
            wait_s,
        )
    )
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
            return await _patiently(ask, wait_s)
        except ClientError as error:
            may_lead = error.code == ErrorCode.INVALID_REQUEST and not change.dry_run
            if not (may_lead and await _leads_elsewhere(client, cluster.urls, node, wait_s)):
                raise
        return await _patiently(ask, wait_s)

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
    reply = cluster.ask(
        lambda client: _patiently(
            lambda: client.change_voters(
                VoterAction.MOVE, node, directory_id, place, **change.arguments()
            ),
            wait_s,
        )
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
        lambda client: _Replacing(client, cluster.urls, node, reason, wait_s).run(dry_run=dry_run)
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


class Replacement(msgspec.Struct, frozen=True, rename="camel"):
    """What `replace` did, or with `--dry-run` would do."""

    node_id: int
    directory_id: str
    """Of the folder that votes now."""
    steps: tuple[str, ...]
    offset: int
    """Of the last change; -1: none was made."""
    dry_run: bool


class _Replacing:
    """Removes the old folder of a node from the voters, and adds the one that it runs on."""

    def __init__(
        self, client: LogbergClient, urls: tuple[str, ...], node: int, reason: str, wait_s: float
    ) -> None:
        self._client = client
        self._urls = urls
        self._node = node
        self._reason = reason
        self._until = time.monotonic() + wait_s

    async def run(self, *, dry_run: bool) -> Replacement:
        """Make both changes, as far as they are not made. Raises ClientError."""
        linked, old = await _patiently(self._found, self._left())
        steps = []
        if old is not None:
            steps.append(f"remove the folder {old.directory_id} of controller {self._node}")
        steps.append(f"add its folder {linked.directory_id}")
        offset = -1
        if dry_run:
            if old is not None:
                await self._change(VoterAction.REMOVE, old, dry_run=True)
        else:
            if old is not None:
                await self._change(VoterAction.REMOVE, old)
                note(f"the folder {old.directory_id} of controller {self._node} votes no more")
            offset = (await self._change(VoterAction.ADD, linked)).offset
        return Replacement(self._node, linked.directory_id, tuple(steps), offset, dry_run)

    async def _found(self) -> tuple[QuorumMember, QuorumMember | None]:
        """The node with the folder that it runs on, and with the one that votes.

        Raises ClientError: VOTERS_NOT_READY while the leader doesn't see it.
        """
        view = await view_of(self._client, self._urls, None)
        members = [member for member in view.members if member.node_id == self._node]
        voter = next((member for member in members if member.is_voter), None)
        linked = next((member for member in members if _runs(member, view)), None)
        if linked is not None and linked is voter:
            raise ClientError(
                ErrorCode.INVALID_REQUEST.value,
                f"controller {self._node} runs on the folder that votes, {voter.directory_id}: "
                "there is nothing to replace",
            )
        if linked is None:
            raise ClientError(
                ErrorCode.VOTERS_NOT_READY.value,
                f"controller {self._node} is not linked with the leader: start it, with an empty "
                "folder",
            )
        return linked, voter

    async def _change(
        self, action: VoterAction, member: QuorumMember, *, dry_run: bool = False
    ) -> ChangeVotersReply:
        try:
            return await _patiently(
                lambda: self._client.change_voters(
                    action,
                    member.node_id,
                    member.directory_id,
                    reason=self._reason or f"replace the folder of controller {self._node}",
                    dry_run=dry_run,
                ),
                self._left(),
            )
        except ClientError as error:
            if error.code != ErrorCode.REQUEST_TIMED_OUT:
                raise
            raise ClientError(
                error.code,
                "outcome unknown: the change may have been made, or not. Run the command again: it "
                "looks at the voters first",
                error.status,
            ) from None

    def _left(self) -> float:
        return max(0.0, self._until - time.monotonic())


def _runs(member: QuorumMember, view: QuorumReply) -> bool:
    """Whether the leader has a link with it, or it is the leader."""
    return member.wire_format > 0 or (
        member.node_id == view.node_id and member.directory_id == view.directory_id
    )


async def _transferred(
    client: LogbergClient, urls: tuple[str, ...], node: int, wait_s: float, reason: str = ""
) -> int:
    """Return the epoch in which a voter leads that was asked to. Raises ClientError."""
    until = time.monotonic() + wait_s
    await _patiently(lambda: client.transfer_leadership(node, reason=reason), wait_s)
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
        await asyncio.sleep(_POLL_S)


async def _leads_elsewhere(
    client: LogbergClient, urls: tuple[str, ...], node: int, wait_s: float
) -> bool:
    """Let another voter take over if this one leads; False: it doesn't, or there is no other.

    Raises ClientError.
    """
    view = await view_of(client, urls, None)
    if not (is_leaders(view) and view.node_id == node):
        return False
    others = [m for m in view.members if m.is_voter and m.node_id != node and _runs(m, view)]
    if others:
        best = max(others, key=lambda member: member.match_index)
        note(f"controller {node} leads: controller {best.node_id} takes over first")
        why = f"controller {node} shall be removed"
        await _transferred(client, urls, best.node_id, wait_s, why)
    return bool(others)


async def _patiently(ask: Callable[[], Awaitable[T]], wait_s: float) -> T:
    """Ask until it is time for the change. Raises ClientError, after `wait_s` also "not yet"."""
    until, told = time.monotonic() + wait_s, False
    while True:
        try:
            return await ask()
        except ClientError as error:
            if error.code != ErrorCode.VOTERS_NOT_READY or time.monotonic() >= until:
                raise
            if not told:
                note(f"waiting: {error}")
                told = True
        await asyncio.sleep(_POLL_S)


def _voters(reply: ChangeVotersReply) -> str:
    names = ", ".join(str(voter.node_id) for voter in reply.voters)
    return f"Voters: {names} (offset {reply.offset})"
