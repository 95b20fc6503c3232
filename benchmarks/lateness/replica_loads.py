"""The loads of `make lateness` for the routes about partitions and their replicas.

Rule: as in `benchmarks.lateness.loads`, which takes these rows into its table.
"""

from typing import Any

import msgspec

from benchmarks.lateness.load import Load
from benchmarks.lateness.stage import BIGGEST, Stage

_GROWS_BY = 10_000
_AT_ONCE = 2_000
"""Replicas in one request of a broker: the most."""
_MOVED = 50_000
"""Partitions in one request for reassignments: the most."""


async def _partitions_come(stage: Stage) -> None:
    """A topic grows, a little and by 10,000 partitions; each time a dry run comes first."""
    for turn in stage.going_on():
        name = f"grows-{stage.leader}-{turn}"
        topic = {"name": name, "numPartitions": 1, "replicationFactor": 3}
        status, answer = await stage.change("POST", "/v1/topics", {"topics": [topic]})
        assert status == 200, answer
        for count in (2, _GROWS_BY):
            for dry in (True, False):
                body = {"topics": [{"name": name, "count": count}], "dryRun": dry}
                status, _ = await stage.ask("POST", "/v1/partitions", msgspec.json.encode(body))
                assert status in (200, 429), status
        status, answer = await stage.change("DELETE", f"/v1/topics/{name}")
        assert status == 200, answer


async def _reassignments(stage: Stage) -> None:
    """Very many partitions get another replica, in one request, and lose it again."""
    query = f"topic={BIGGEST}&limit=1000"
    token = ""
    moved: list[dict[str, Any]] = []
    while len(moved) < min(_MOVED, stage.largest):
        page = await stage.json(f"/v1/partitions?{query}{token}")
        for row in page["partitions"]:
            held = row["replicas"]
            other = next(b.broker_id for b in stage.brokers.brokers if b.broker_id not in held)
            moved.append(
                {
                    "topic": BIGGEST,
                    "partition": row["partition"],
                    "replicas": [*held[1:], other],
                }
            )
        if page["continuation"] is None:
            break
        token = f"&continuation={page['continuation']}"
    back = [{"topic": BIGGEST, "partition": row["partition"]} for row in moved]
    for _ in stage.going_on():
        for rows in (moved, back):
            body = {"partitions": rows}
            status, answer = await stage.change("POST", "/v1/reassignments", body)
            assert status in (200, 429), answer
            await stage.json("/v1/reassignments")


async def _lists(stage: Stage) -> None:
    """All partitions, page by page, and the filters, of which few or none fit."""
    token = ""
    for _ in stage.going_on():
        page = await stage.json(f"/v1/partitions?limit=1000{token}")
        more = page["continuation"]
        token = "" if more is None else f"&continuation={more}"
        for query in ("leaderless=true", "underReplicated=true", "reassigning=true"):
            await stage.json(f"/v1/partitions?{query}")
        await stage.json(f"/v1/partitions/{BIGGEST}/0")
        await stage.json("/v1/brokers/1/explain")


async def _what_if(stage: Stage) -> None:
    """What a rack's loss would write: a third of all brokers. And a plan that empties a broker."""
    for _ in stage.going_on():
        for path in (
            "/v1/what-if/loss?rack=rack-1",
            "/v1/what-if/loss?brokers=1&all=true",
            "/v1/reassignments/plan?brokers=1",
        ):
            status, _body = await stage.ask("GET", path)
            assert status == 200, (path, status)


async def _directories(stage: Stage) -> None:
    """A broker says of 2,000 replicas in which directory they lie."""
    topic = (await stage.json(f"/v1/topics/{BIGGEST}?limit=10000"))["topics"][0]
    broker = stage.brokers.brokers[0]
    held = [
        partition["partition"]
        for partition in topic["partitions"]
        if broker.broker_id in partition["replicas"]
    ]
    for turn in stage.going_on():
        # Unassigned and migrating: both of them count as directories that work.
        directory = "AAAAAAAAAAAAAAAAAAAAA" + ("Q" if turn % 2 else "A")
        body = {
            "clusterId": "benchmark",
            "brokerEpoch": broker.epoch,
            "replicas": [
                {"topicId": topic["topicId"], "partition": number, "directory": directory}
                for number in held[:_AT_ONCE]
            ],
        }
        path = f"/v1/brokers/{broker.broker_id}/directories"
        status, answer = await stage.change("POST", path, body)
        assert status in (200, 429), answer


REPLICA_LOADS = (
    Load(
        "a topic grows by 10,000 partitions",
        ("create_partitions",),
        _partitions_come,
        ("PartitionRecord",),
    ),
    Load(
        "very many partitions are reassigned in one request",
        ("alter_reassignments", "list_reassignments"),
        _reassignments,
        ("PartitionChangeRecord",),
    ),
    Load(
        "lists of partitions",
        ("list_partitions", "describe_partition", "explain_broker"),
        _lists,
    ),
    Load("what a rack's loss would write", ("lose_brokers", "plan_reassignments"), _what_if),
    Load(
        "2,000 replicas get directories",
        ("assign_replicas",),
        _directories,
        ("PartitionChangeRecord",),
    ),
)
