"""`logberg status`: every controller as it answers for itself, and the brokers."""

import asyncio
from contextlib import suppress
from typing import Any

import click

from logberg.client import ClientError, LogbergClient
from logberg.connection_options import ClusterConnection, cluster_options
from logberg.failure import Failure
from logberg.output import Sheet, print_json, show, styled, table

_NEEDED = {"role", "active", "nodeId", "clusterId", "leaderEpoch"}
"""Fields of a status that the tables rest on."""


@click.command("status")
@cluster_options
def command(*, cluster: ClusterConnection, output: str) -> None:
    """Show how the cluster is. Exit 1 when no controller is active."""
    found = cluster.ask(lambda client: observe(client, cluster.urls))
    if output == "json":
        print_json(found)
    else:
        draw(found)
    if found["active"] is None:
        raise Failure(
            "no controller is active: a majority must run and reach each other. "
            "`logberg quorum status` on each shows why."
        )


async def observe(client: LogbergClient, urls: tuple[str, ...]) -> dict[str, Any]:
    """Ask every controller for itself and the active one for brokers; one that is down is shown."""
    answers = await asyncio.gather(*(_status_of(client, url) for url in urls))
    active = next((a for a in answers if a.get("active")), None)
    brokers: list[dict[str, Any]] | None = None
    if active is not None:
        # A controller that is slow to answer is part of the picture, not the end of it.
        with suppress(ClientError, KeyError, TypeError):
            reply = await client.from_one(active["url"], "/v1/brokers", {"consistency": "stale"})
            brokers = reply["brokers"]
    return {
        "clusterId": next((a["clusterId"] for a in answers if "clusterId" in a), None),
        "active": None if active is None else active["nodeId"],
        "epoch": None if active is None else active["leaderEpoch"],
        "controllers": answers,
        "brokers": brokers or [],
        "brokersKnown": brokers is not None,
    }


async def _status_of(client: LogbergClient, url: str) -> dict[str, Any]:
    try:
        answer = await client.from_one(url, "/v1/status", {"consistency": "stale"})
    except ClientError as error:
        return _down(url, str(error))
    if not isinstance(answer, dict) or not answer.keys() >= _NEEDED:
        return _down(url, "this is not a controller: it answered /v1/status with something else")
    return {"url": url, **answer}


def _down(url: str, note: str) -> dict[str, Any]:
    return {"url": url, "role": "down", "active": False, "note": note}


def draw(found: dict[str, Any]) -> None:
    """Print what was observed."""
    show(*tables(found))


def tables(found: dict[str, Any]) -> list[Sheet | str]:
    """The observation as tables: controllers, then brokers."""
    active = found["active"]
    title = f"cluster {found['clusterId']}" + (
        f"   active controller {active}   epoch {found['epoch']}" if active is not None else ""
    )
    controllers = table(
        ["controller", "role", "epoch", "log end", "checkpoint", "topics", "partitions", "note"],
        [
            (
                answer.get("nodeId", answer["url"]),
                styled("active" if answer["active"] else answer["role"]),
                answer.get("leaderEpoch", "-"),
                answer.get("logEnd", "-"),
                _offset_of(answer.get("newestSnapshot")),
                answer.get("topics", "-"),
                answer.get("partitions", "-"),
                answer.get("note", ""),
            )
            for answer in found["controllers"]
        ],
        title,
    )
    brokers = table(
        ["broker", "state", "epoch", "leads", "replicas", "applied", "heard", "listeners"],
        [
            (
                broker["brokerId"],
                styled(broker["state"]),
                broker["brokerEpoch"],
                broker["leaders"],
                broker["replicas"],
                "-" if broker.get("appliedOffset") is None else broker["appliedOffset"],
                _ago(broker.get("lastContactMs")),
                ", ".join(f"{e['host']}:{e['port']}" for e in broker["endpoints"]),
            )
            for broker in found["brokers"]
        ],
    )
    repairs = [
        f"controller {answer['nodeId']}: {sentence}"
        for answer in found["controllers"]
        for sentence in answer.get("repairs", ())
    ]
    parts: list[Sheet | str] = [controllers, "", *repairs] if repairs else [controllers]
    return [*parts, "", brokers] if found["brokers"] else parts


def _ago(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.1f} s ago"


def _offset_of(snapshot: str | None) -> str:
    """The offset in a snapshot's id, such as 00000000000000000042-0000000003."""
    if not snapshot:
        return "-"
    offset = snapshot.partition("-")[0]
    return str(int(offset)) if offset.isdecimal() else snapshot
