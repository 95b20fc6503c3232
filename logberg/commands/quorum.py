"""`logberg quorum`: who votes, who leads, who lags.

Rule: only the leader knows how far the others are. So the leader is asked; where there is none, or
a node was named, the answer says whose view it is and leaves out what that node cannot know.
"""

import asyncio
from typing import Any

import click

from logberg.client import ClientError, LogbergClient
from logberg.connection_options import ClusterConnection, cluster_options
from logberg.output import facts, print_json, show, styled, table
from logberg.suggesting_group import SuggestingGroup
from runtime.origins import may_follow


@click.group("quorum", cls=SuggestingGroup)
def command() -> None:
    """Who votes, who leads, who lags."""


@command.command("status")
@click.option("--node", type=int, help="The view of this controller instead of the leader's.")
@cluster_options
def status(*, node: int | None, cluster: ClusterConnection, output: str) -> None:
    """Describe the quorum as its leader sees it.

    Without a leader, or with --node, the answer is one controller's own view and says so.
    """
    reply = cluster.ask(lambda client: view_of(client, cluster.urls, node))
    if output == "json":
        print_json(reply)
        return
    whole = _is_leaders(reply)
    show(
        facts(
            [
                ("cluster", reply["clusterId"]),
                ("leader", f"{_or(reply['leaderId'], 'none')}  {reply['leaderUrl'] or ''}"),
                ("epoch", reply["leaderEpoch"]),
                ("as seen by", _viewer(reply)),
                ("high watermark", reply["highWatermark"]),
                (
                    "journal",
                    f"{reply['journalBytes'] / 1024:.0f} KiB, {reply['lastIndex']} entries",
                ),
                *([("note", reply["note"])] if reply["note"] else []),
            ]
        ),
        "",
        table(
            ["node", "role", "directory", "listens", "durable to", "lag", "heard"],
            [
                (
                    member["nodeId"],
                    styled(_role(member, reply["leaderId"])),
                    member["directoryId"],
                    f"{member['host']}:{member['port']}",
                    *_progress(member, reply, whole=whole),
                )
                for member in reply["members"]
            ],
        ),
    )


async def view_of(client: LogbergClient, urls: tuple[str, ...], node: int | None) -> dict[str, Any]:
    """The leader's view of the quorum, else that of a controller that answers.

    `node`: that controller's own view. Raises ClientError when nobody answers, or not that node.
    """
    found = await asyncio.gather(*(_view_from(client, url) for url in urls))
    views = [view for view in found if isinstance(view, dict)]
    if node is not None:
        wanted = next((view for view in views if view["nodeId"] == node), None)
        if wanted is None:
            known = ", ".join(str(view["nodeId"]) for view in views) or "none"
            message = f"controller {node} does not answer; those that do: {known}"
            raise ClientError("NO_ANSWER", message)
        return wanted
    if not views:
        # With the patience and the words of every other question.
        answer: dict[str, Any] = await client.get("/v1/quorum")
        views = [answer]
    newest = max(views, key=lambda view: (view["leaderEpoch"], _is_leaders(view)))
    leader_url = newest["leaderUrl"]
    if not _is_leaders(newest) and leader_url and may_follow(urls[0], leader_url):
        leaders = await _view_from(client, leader_url)
        if isinstance(leaders, dict):
            return leaders
    return newest


async def _view_from(client: LogbergClient, url: str) -> dict[str, Any] | ClientError:
    try:
        answer: dict[str, Any] = await client.from_one(url, "/v1/quorum")
    except ClientError as error:
        return error
    return answer


def _is_leaders(reply: dict[str, Any]) -> bool:
    return reply["leaderId"] is not None and reply["nodeId"] == reply["leaderId"]


def _viewer(reply: dict[str, Any]) -> str:
    if _is_leaders(reply):
        return f"node {reply['nodeId']}, the leader"
    return f"node {reply['nodeId']} ({reply['role']}), which does not know how far the others are"


def _progress(member: dict[str, Any], reply: dict[str, Any], *, whole: bool) -> tuple[Any, ...]:
    """Durable to, lag, heard: of the others only the leader knows."""
    own = member["nodeId"] == reply["nodeId"]
    if not (own or whole):
        return "-", "-", "-"
    durable: int = reply["durableIndex"] if own else member["matchIndex"]
    contact = member.get("lastContactMs")
    heard = "itself" if own else "never" if contact is None else f"{contact} ms ago"
    return durable, max(0, reply["lastIndex"] - durable), heard


def _role(member: dict[str, Any], leader: object) -> str:
    if not member["isVoter"]:
        return "observer"
    return "leader" if member["nodeId"] == leader else "follower"


def _or(value: object, otherwise: str) -> object:
    return otherwise if value is None else value
