"""`logberg quorum`: who votes, who leads, who lags; and the commands that change it.

Rule: only the leader knows how far the others are. So the leader is asked; where there is none, or
a node was named, the answer says whose view it is and leaves out what that node cannot know.
"""

from typing import Any

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    cluster_options,
    print_change,
)
from logberg.cli.output import facts, print_json, show, styled, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.cluster_view import is_leaders, member_progress, member_role
from logberg.commands.head_keys import keys, rotate_key
from logberg.commands.quorum_view import view_of
from logberg.commands.recover import recover
from logberg.commands.voters import add, move, promote, remove, replace, transfer
from metadata.messages.quorum import QuorumMember, QuorumReply


@click.group("quorum", cls=SuggestingGroup)
def command() -> None:
    """Show the voters, the leader, and how far each is behind; change the voters."""


for each in (recover, add, promote, remove, replace, move, transfer, keys, rotate_key):
    command.add_command(each)


@command.command("status")
@click.option("--node", type=int, help="Ask this controller instead of the leader.")
@cluster_options
def status(*, node: int | None, cluster: ClusterConnection, output: str) -> None:
    """Describe the quorum as its leader sees it.

    Without a leader, or with --node, the answer is one controller's own view and says so.
    """
    reply = cluster.ask(lambda client: view_of(client, cluster.urls, node))
    if output == "json":
        print_json(reply)
        return
    whole = is_leaders(reply)
    show(
        facts(
            [
                ("cluster", reply.cluster_id),
                ("leader", f"{_or(reply.leader_id, 'none')}  {reply.leader_url or ''}"),
                ("epoch", reply.leader_epoch),
                ("as seen by", _viewer(reply)),
                ("voters", _voters(reply)),
                ("high watermark", reply.high_watermark),
                (
                    "journal",
                    f"{reply.journal_bytes / 1024:.0f} KiB, {reply.last_index} entries",
                ),
                *([("note", reply.note)] if reply.note else []),
            ]
        ),
        "",
        table(
            ["node", "role", "directory", "listens", "durable to", "lag", "heard"],
            [
                (
                    member.node_id,
                    styled(member_role(member, reply.leader_id)),
                    member.directory_id,
                    f"{member.host}:{member.port}",
                    *_progress(member, reply, whole=whole),
                )
                for member in reply.members
            ],
        ),
    )


def _viewer(reply: QuorumReply) -> str:
    if is_leaders(reply):
        return f"node {reply.node_id}, the leader"
    return f"node {reply.node_id} ({reply.role}), which does not know how far the others are"


def _voters(reply: QuorumReply) -> str:
    names = ", ".join(str(member.node_id) for member in reply.members if member.is_voter)
    if not reply.voters_since:
        return f"{names or 'none are known'}, since the first start"
    committed = "committed" if reply.voters_committed else "not known to be committed here"
    return f"{names}, since entry {reply.voters_since}, which is {committed}"


def _progress(member: QuorumMember, reply: QuorumReply, *, whole: bool) -> tuple[Any, ...]:
    """Durable to, lag, heard: of the others only the leader knows."""
    own = member.node_id == reply.node_id
    if not (own or whole):
        return "-", "-", "-"
    contact = member.last_contact_ms
    heard = "itself" if own else "never" if contact is None else f"{contact} ms ago"
    return *member_progress(member, reply), heard


def _or(value: object, otherwise: str) -> object:
    return otherwise if value is None else value


@command.command("unregister-controller")
@click.argument("controller_id", type=int)
@click.option("--force", is_flag=True, help="Also if it is a voter; never if it is active.")
@change_options
def unregister_controller(
    *,
    controller_id: int,
    force: bool,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Forget the registration of a controller that will not come back.

    A stale registration keeps feature levels from being raised. A controller that still runs
    registers itself again. Needs metadata.version 33.
    """
    reply = cluster.ask(
        lambda client: client.unregister_controller(
            controller_id, force=force, **change.arguments()
        )
    )
    said = f"controller {controller_id} is unregistered (offset {reply.offset})"
    print_change(reply, output, said)
