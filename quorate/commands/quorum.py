"""`quorate quorum`: who votes, who leads, who lags."""

from typing import Any

import click

from quorate.asking import Cluster, cluster_options
from quorate.output import facts, print_json, show, styled, table
from quorate.suggesting import SuggestingGroup


@click.group("quorum", cls=SuggestingGroup)
def command() -> None:
    """Who votes, who leads, who lags."""


@command.command("status")
@cluster_options
def status(*, cluster: Cluster, output: str) -> None:
    """Describe the quorum as the active controller sees it."""
    reply = cluster.ask(lambda client: client.get("/v1/quorum"))
    if output == "json":
        print_json(reply)
        return
    show(
        facts(
            [
                ("cluster", reply["clusterId"]),
                ("leader", f"{reply['leaderId']}  {reply['leaderUrl'] or ''}"),
                ("epoch", reply["leaderEpoch"]),
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
                    _durable_to(member, reply),
                    max(0, reply["lastIndex"] - _durable_to(member, reply)),
                    _heard(member, reply["leaderId"]),
                )
                for member in reply["members"]
            ],
        ),
    )


def _durable_to(member: dict[str, Any], reply: dict[str, Any]) -> int:
    """What is known to be on a member's disk; the answering node knows its own best."""
    own = member["nodeId"] == reply["nodeId"]
    known: int = reply["durableIndex"] if own else member["matchIndex"]
    return known


def _role(member: dict[str, object], leader: object) -> str:
    if not member["isVoter"]:
        return "observer"
    return "leader" if member["nodeId"] == leader else "follower"


def _heard(member: dict[str, object], leader: object) -> str:
    contact = member.get("lastContactMs")
    if member["nodeId"] == leader:
        return "itself"
    return "never" if contact is None else f"{contact} ms ago"
