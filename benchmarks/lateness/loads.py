"""The loads of `make lateness`: every route with its worst parameters, every kind of record.

Rule: a load names the routes that it drives (`controller.http.routes`) and, if it writes, the
records. The run fails when a route, or a record that the controller can write, is driven by none.
A new route or record needs a row here.
"""

import asyncio
import time

import msgspec

from benchmarks.instruments.simulated_brokers import PATH
from benchmarks.lateness.beside import beside, made
from benchmarks.lateness.broker_loads import BROKER_LOADS
from benchmarks.lateness.client_loads import CLIENT_LOADS
from benchmarks.lateness.coordination_loads import COORDINATION_LOADS
from benchmarks.lateness.declared_loads import DECLARED_LOADS
from benchmarks.lateness.file_loads import FILE_LOADS
from benchmarks.lateness.kafka_loads import KAFKA_LOADS
from benchmarks.lateness.load import Load, Run
from benchmarks.lateness.replica_loads import REPLICA_LOADS
from benchmarks.lateness.stage import BIGGEST, Stage
from metadata.messages.fetch import MetadataFetchRequest, WantedState
from metadata.messages.wire import encode
from runtime.http.requests import JSON, MSGPACK

_MIB = 1024 * 1024


def _get(*paths: str, accept: str = JSON) -> Run:
    """Ask for these, one after another, for as long as a load lasts."""

    async def run(stage: Stage) -> None:
        for _ in stage.going_on():
            for path in paths:
                status, _ = await stage.ask("GET", path, accept=accept)
                assert status == 200, (path, status)

    return run


async def _everywhere(stage: Stage) -> None:
    """Reads that any node answers: from a standby."""
    standby = next(n for n in stage.controllers.ports if n != stage.leader)
    offset = (await stage.json("/v1/status"))["offset"]
    for turn in stage.going_on():
        how = "consistency=stale" if turn % 2 else f"minOffset={offset}"
        for path in ("/v1/brokers", "/v1/topics", f"/v1/topics/{BIGGEST}", "/v1/brokers/1"):
            status, _ = await stage.ask("GET", f"{path}?{how}", node=standby)
            assert status == 200, (path, status)


def _fetch(content_type: str, start: int = 0) -> Run:
    """An agent that fetches the whole log, 8 MiB at a time."""

    async def run(stage: Stage) -> None:
        offset, epoch = start, 0
        broker = stage.brokers.brokers[0]
        end = (await stage.json("/v1/status"))["offset"]
        for _ in stage.going_on():
            request = MetadataFetchRequest(
                cluster_id="benchmark",
                broker_id=broker.broker_id,
                incarnation_id=broker.incarnation,
                broker_epoch=broker.epoch,
                fetched_offset=offset,
                fetched_epoch=epoch,
                applied_offset=broker.offset,
                wanted_state=WantedState.ONLINE,
                max_bytes=8 * _MIB,
            )
            body = encode(request, content_type)
            status, _ = await stage.ask("POST", PATH, body, accept=content_type, sent=content_type)
            assert status == 200, status
            # Somewhere else in the log each time; a place between batches is not needed.
            offset, epoch = (offset + end // 7) % end, broker.leader_epoch

    return run


async def _whole_log(stage: Stage) -> None:
    """The log's beginning, middle and end in each format, at the largest size."""
    end = (await stage.json("/v1/status"))["offset"]
    for turn in stage.going_on():
        form = ("json", "batches")[turn % 2]
        accept = (JSON, MSGPACK)[turn // 2 % 2]
        offset = end * (turn % 10) // 10
        path = f"/v1/log?offset={offset}&maxBytes={8 * _MIB}&format={form}"
        status, _ = await stage.ask("GET", path, accept=accept)
        assert status == 200, status


async def _watches(stage: Stage) -> None:
    """The history of one topic and of one broker, from the log's beginning on."""
    for turn in stage.going_on():
        resource = (f"topic:{_TOPIC.rpartition('/')[2]}", "broker:1")[turn % 2]
        start = "0"
        for _ in range(20):
            start = (await stage.json(f"/v1/watch?resource={resource}&from={start}"))["nextFrom"]


async def _topics_come_and_go(stage: Stage) -> None:
    for turn in stage.going_on():
        names = [f"new-{stage.leader}-{turn}-{n}" for n in range(100)]
        await made(stage, *((name, 10) for name in names))
        for by in ("dry", "real"):
            status, answer = await stage.change(
                "DELETE", "/v1/topics", {"names": names, "dryRun": by == "dry"}
            )
            assert status == 200, answer
        await made(stage, (names[0], 1))
        status, answer = await stage.change("DELETE", f"/v1/topics/{names[0]}")
        assert status == 200, answer


async def _levels(stage: Stage) -> None:
    """A level is raised and lowered; each time a dry run comes first."""
    for _ in stage.going_on():
        for level, kind in ((29, "upgrade"), (28, "safe_downgrade")):
            update = {
                "feature": "metadata.version",
                "maxVersionLevel": level,
                "upgradeType": kind,
            }
            for dry in (True, False):
                body = {"updates": [update], "dryRun": dry}
                status, answer = await stage.change("POST", "/v1/features", body)
                assert status == 200, answer


async def _configs(stage: Stage) -> None:
    """Configs of many topics in one request, of one topic, and of all brokers."""
    names = [f"configured-{stage.leader}-{n}" for n in range(1_000)]
    for start in range(0, len(names), 100):
        await made(stage, *((name, 1) for name in names[start : start + 100]))
    for turn in stage.going_on():
        change = {"name": "retention.ms", "value": f"{turn + 1}"}
        resources = [
            {"resourceType": "topic", "resourceName": name, "configs": [change]} for name in names
        ]
        status, answer = await stage.change("PATCH", "/v1/configs", {"resources": resources})
        assert status == 200, answer
        for path in (f"/v1/configs/topic/{BIGGEST}", "/v1/configs/broker/default"):
            for value in ("2", "1"):
                body = {"configs": [{"name": "min.insync.replicas", "value": value}]}
                status, answer = await stage.change("PATCH", path, body)
                assert status == 200, answer
    for start in range(0, len(names), 100):
        status, answer = await stage.change(
            "DELETE", "/v1/topics", {"names": names[start : start + 100]}
        )
        assert status == 200, answer


async def _unclean(stage: Stage) -> None:
    """Unclean elections are allowed for all topics and forbidden: each time, leaders are sought."""
    for turn in stage.going_on():
        change = {"name": "unclean.leader.election.enable", "value": f"{turn % 2 == 0}".lower()}
        path = "/v1/configs/broker/default"
        status, answer = await stage.change("PATCH", path, {"configs": [change]})
        assert status == 200, answer


async def _separators(stage: Stage) -> None:
    """Names that are spelled like very many others in metrics."""
    for turn in stage.going_on():
        name = f"{turn}" + ".a_b" * 30
        await made(stage, (name, 1))
        status, answer = await stage.change("DELETE", f"/v1/topics/{name}")
        assert status == 200, answer


async def _large_bodies(stage: Stage) -> None:
    """Requests of nearly 4 MiB: topics without end, a registration without end, and nonsense."""
    topics = [{"name": f"{n:06}" + "x" * 240, "numPartitions": 1} for n in range(4_950)]
    bodies = (
        msgspec.json.encode({"topics": topics, "dryRun": True}),
        msgspec.json.encode({"names": [topic["name"] for topic in topics], "dryRun": True}),
        b'{"topics":[' + b'{"name":"x","configs":{"a":"b"}},' * 120_000 + b"0]}",
        b"[" * 4_000_000,
    )
    for turn in stage.going_on():
        for method, body in zip(("POST", "DELETE", "POST", "POST"), bodies, strict=True):
            status, _ = await stage.ask(method, "/v1/topics", body)
            assert status in (200, 400, 413, 429), (turn, status)
        status, _ = await stage.ask("POST", PATH, bodies[2])
        assert status in (400, 413), status


async def _dry_run(stage: Stage) -> None:
    """What a topic of very many partitions would write, record by record."""
    topic = {"name": "dry", "numPartitions": stage.largest, "replicationFactor": 3}
    for _ in stage.going_on():
        body = msgspec.json.encode({"topics": [topic], "dryRun": True})
        status, _ = await stage.ask("POST", "/v1/topics", body)
        assert status in (200, 413, 429), status


async def _crowd(stage: Stage) -> None:
    """Forty readers at once of what is longest, and forty of what is short."""

    async def read(number: int) -> None:
        offset = number * 20_000
        paths = (
            _TOPIC,
            f"/v1/log?offset={offset}&maxBytes={8 * _MIB}&format=json",
            "/v1/brokers",
            "/v1/topics",
        )
        for turn in stage.going_on():
            await stage.ask("GET", paths[(turn + number) % len(paths)])

    async def fetch(number: int) -> None:
        await _fetch(MSGPACK, number * 10_000)(stage)

    everybody = [read(number) for number in range(40)] + [fetch(number) for number in range(40)]
    await asyncio.gather(*everybody)


async def _watching_crowd(stage: Stage) -> None:
    """Three hundred watchers of one topic, and changes that each of them is told."""
    name = f"watched-{time.monotonic_ns()}"
    await stage.change("POST", "/v1/topics", {"topics": [{"name": name, "numPartitions": 1}]})
    path = f"/v1/watch?resource=topic:{name}&waitMs=2000"

    async def watch() -> None:
        for _ in stage.going_on():
            status, _ = await stage.ask("GET", path)
            assert status == 200, status

    async def alter() -> None:
        for turn in stage.going_on():
            configs = [{"name": "retention.ms", "value": str(turn)}]
            await stage.change("PATCH", f"/v1/configs/topic/{name}", {"configs": configs})
            await asyncio.sleep(0.1)

    await asyncio.gather(alter(), *(watch() for _ in range(300)))


async def _large_topic(stage: Stage) -> None:
    """A tenth of all partitions come in one request, and go in one."""
    for turn in range(2):
        name = f"large-{time.monotonic_ns()}-{turn}"
        await beside(stage, made(stage, (name, stage.largest)))
        await beside(stage, stage.change("DELETE", f"/v1/topics/{name}"))


async def _many_topics(stage: Stage) -> None:
    """2,000 topics go in one request, which is written in rounds."""
    for turn in range(2):
        names = [f"many-{time.monotonic_ns()}-{turn}-{number}" for number in range(2_000)]
        for start in range(0, len(names), 200):
            await made(stage, *((name, 5) for name in names[start : start + 200]))
        await beside(stage, stage.change("DELETE", "/v1/topics", {"names": names}))


async def _too_large(stage: Stage) -> None:
    """A typing error: a million partitions in 80 bytes of JSON."""
    topic = {"name": "typo", "numPartitions": 1_000_000, "replicationFactor": 3}
    for _ in stage.going_on():
        status, answer = await stage.change("POST", "/v1/topics", {"topics": [topic]})
        assert (status, answer["code"]) == (400, "POLICY_VIOLATION"), answer


async def _isrs(stage: Stage) -> None:
    """The leader of many partitions takes a replica out of all their ISRs, and back in."""
    for turn in stage.going_on():
        topic = (await stage.json(f"/v1/topics/{BIGGEST}?limit=4000"))["topics"][0]
        leader = topic["partitions"][turn % 3]["leader"]
        broker = next((b for b in stage.brokers.brokers if b.broker_id == leader), None)
        if broker is None:
            continue
        wanted = [
            {
                "partitionIndex": partition["partition"],
                "leaderEpoch": partition["leaderEpoch"],
                "partitionEpoch": partition["partitionEpoch"],
                "newIsrWithEpochs": [
                    {"brokerId": replica}
                    for replica in (partition["replicas"] if turn % 2 else [leader])
                ],
            }
            for partition in topic["partitions"]
            if partition["leader"] == leader
        ]
        body = {
            "clusterId": "benchmark",
            "brokerId": leader,
            "brokerEpoch": broker.epoch,
            "topics": [{"topicName": BIGGEST, "partitions": wanted[:1_000]}],
        }
        status, answer = await stage.change("POST", "/v1/partitions/alter", body)
        assert status == 200, answer


async def _elections(stage: Stage) -> None:
    """Preferred leaders for all partitions, and for a long list of them; each time dry first."""
    listed = [{"topic": BIGGEST, "partitions": list(range(min(10_000, stage.largest)))}]
    for _ in stage.going_on():
        for wanted in (None, listed):
            for dry in (True, False):
                body = {
                    "electionType": "PREFERRED",
                    "topicPartitions": wanted,
                    "dryRun": dry,
                }
                status, _ = await stage.ask(
                    "POST", "/v1/partitions/elect", msgspec.json.encode(body)
                )
                assert status in (200, 429), status


async def _idle(stage: Stage) -> None:
    await asyncio.sleep(stage.seconds)


_TOPIC = f"/v1/topics/{BIGGEST}"
LOADS = (
    Load("nothing but heartbeats", ("metadata_fetch",), _idle),
    Load("probes", ("live", "ready"), _get("/health/live", "/health/ready")),
    Load("metrics", ("metrics",), _get("/metrics")),
    Load(
        "status and quorum",
        ("status", "describe_quorum", "describe_caller"),
        _get("/v1/status", "/v1/quorum", "/v1/caller"),
    ),
    Load("OpenAPI document", ("openapi_document",), _get("/v1/openapi.json")),
    Load("brokers", ("list_brokers",), _get("/v1/brokers")),
    Load("brokers, MessagePack", ("list_brokers",), _get("/v1/brokers", accept=MSGPACK)),
    Load("feature levels", ("list_features",), _get("/v1/features")),
    Load(
        "feature levels rise and fall",
        ("update_features",),
        _levels,
        ("FeatureLevelRecord",),
    ),
    Load("configs that exist", ("list_configs",), _get("/v1/configs", "/v1/configs?type=topic")),
    Load(
        "configs of a topic and of a broker",
        ("describe_config",),
        _get(f"/v1/configs/topic/{BIGGEST}", "/v1/configs/broker/1", "/v1/configs/broker/default"),
    ),
    Load(
        "configs of a thousand topics, of the biggest and of all brokers",
        ("alter_configs", "alter_config"),
        _configs,
        ("ConfigRecord",),
    ),
    Load("unclean elections on and off", ("alter_config",), _unclean, ("ConfigRecord",)),
    Load("one broker", ("describe_broker",), _get("/v1/brokers/1")),
    Load("topics, 1 and 1000", ("list_topics",), _get("/v1/topics?limit=1", "/v1/topics")),
    Load("topics behind the last", ("list_topics",), _get("/v1/topics?after=zzz", accept=MSGPACK)),
    Load("the biggest topic", ("describe_topic",), _get(_TOPIC)),
    Load("the biggest topic, MessagePack", ("describe_topic",), _get(_TOPIC, accept=MSGPACK)),
    Load("stale and minOffset, a standby", ("list_brokers", "describe_topic"), _everywhere),
    Load("the log, 8 MiB, each format", ("read_log",), _whole_log),
    Load("watches from the beginning", ("watch_resource",), _watches),
    Load("fetches of 8 MiB", ("metadata_fetch",), _fetch(MSGPACK)),
    Load("fetches of 8 MiB, JSON", ("metadata_fetch",), _fetch(JSON)),
    Load(
        "topics come and go",
        ("create_topics", "delete_topics", "delete_topic"),
        _topics_come_and_go,
        ("TopicRecord", "PartitionRecord", "RemoveTopicRecord", "RequestOutcomeRecord"),
    ),
    Load("a crowd of readers and fetchers", ("read_log", "metadata_fetch"), _crowd),
    Load("a crowd of watchers", ("watch_resource",), _watching_crowd),
    Load("the largest bodies", ("create_topics", "delete_topics"), _large_bodies),
    Load("a dry run of the biggest topic", ("create_topics",), _dry_run),
    Load("a topic of a million is refused", ("create_topics",), _too_large),
    Load("a tenth of all comes and goes", ("create_topics", "delete_topic"), _large_topic),
    Load("2,000 topics go in one request", ("delete_topics",), _many_topics),
    Load("ISRs shrink and grow", ("alter_partition",), _isrs, ("PartitionChangeRecord",)),
    Load("leaders are elected", ("elect_leaders",), _elections, ("PartitionChangeRecord",)),
    Load("names with 30 separators", ("create_topics",), _separators),
    *FILE_LOADS,
    *BROKER_LOADS,
    *CLIENT_LOADS,
    *COORDINATION_LOADS,
    *REPLICA_LOADS,
    *DECLARED_LOADS,
    *KAFKA_LOADS,
)
