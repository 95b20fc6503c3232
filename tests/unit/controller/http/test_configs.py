"""Configs over HTTP: a part of Kafka's cases, what a change does to partitions, and policies."""

import json

import pytest

from controller.policies import Policies, PolicyViolationError
from metadata.features import BASE
from metadata.records import (
    ConfigRecord,
    ConfigResourceType,
    PartitionRecord,
    RequestOutcomeRecord,
    TopicRecord,
)
from metadata.sealing import ClusterKey
from tests.oracles.configs.answers import CASES, broker_refuses, read
from tests.unit.controller.cluster import DECLARED, SESSION_S, Broker, Cluster, keep_alive

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
UNCLEAN, MIN_ISR = "unclean.leader.election.enable", "min.insync.replicas"
ELR = "eligible.leader.replicas.version"
HERE = [
    case
    for case in read(CASES)
    if case["about"] in {"set", "delete", "append", "subtract", "equal", "resource"}
    and "static" not in case
    and not any(name == "9" or (kind != "broker" and not name) for kind, name, *_ in case["ask"])
]
"""The cases whose state requests can make, on controller 1 in place of 9."""


KEY = ClusterKey(b"\x07" * 32)


@pytest.fixture(scope="module")
def shared():
    # Kafka's answers have the secrets in clear: they are not sealed at the lowest levels.
    cluster = Cluster(nodes=1, initial_features=BASE)
    cluster.online(1)
    return cluster


@pytest.fixture
def cluster():
    cluster = Cluster(nodes=1, cluster_key=KEY)
    cluster.online(1, 2, 3)
    return cluster


def alter(cluster, kind, name, *changes, **more):
    """Change configs: (key, value), or (key, value, operation)."""
    configs = [
        {"name": key, "value": value, "operation": (*operation, "set")[0]}
        for key, value, *operation in changes
    ]
    body = {"configs": configs, **more.pop("body", {})}
    return cluster.ask("PATCH", f"/v1/configs/{kind}/{name}", body, **more)


def shown(cluster, kind, name):
    status, reply = cluster.ask("GET", f"/v1/configs/{kind}/{name}")
    assert status == 200, reply
    return {each["name"]: each for each in reply["configs"]}


def written(cluster, since):
    records = cluster.records(since)
    return [r for r in records if not isinstance(r, RequestOutcomeRecord)]


@pytest.mark.parametrize("case", HERE, ids=lambda case: f"{case['about']}: {case['what']}")
def test_cases(shared, case):
    for name in case.get("topics", ()):
        if shared.image.topics.named(name) is None:
            shared.create_topic(name, factor=1)
    codes = {"topic": int(TOPIC), "broker": int(BROKER), "group": int(ConfigResourceType.GROUP)}
    shared.write(*(ConfigRecord(codes[kind], *rest) for kind, *rest in case.get("before", ())))
    resources = {}
    for kind, name, key, operation, value in case["ask"]:
        mine = resources.setdefault((kind, name), [])
        mine.append({"name": key, "operation": operation, "value": value})
    body = [{"resourceType": k, "resourceName": n, "configs": c} for (k, n), c in resources.items()]
    end = shared.image.offset
    status, reply = shared.ask("PATCH", "/v1/configs", {"resources": body})
    wanted = [code for _, _, code, _ in case["answers"]]
    records = case["records"]
    if broker_refuses(case):
        wanted, records = ["INVALID_REQUEST"], []
    if len(wanted) == 1:
        assert (reply["code"] if status != 200 else "NONE") == wanted[0]
    else:
        errors = [each["error"] for each in reply["resources"]]
        assert [error["code"] if error else "NONE" for error in errors] == wanted
    kinds = {code: kind for kind, code in codes.items()} | {16: "client-metrics"}
    mine = [r for r in shared.records(end) if isinstance(r, ConfigRecord)]
    assert [[kinds[r.resource_type], r.resource_name, r.name, r.value] for r in mine] == records
    for name in case.get("topics", ()):
        delete(shared, name)
    shared.write(
        *(
            ConfigRecord(kind, name, key, None)
            for (kind, name), values in list(shared.image.configs.resources.items())
            for key, _ in values
        )
    )


def delete(cluster, topic):
    status, reply = cluster.ask("DELETE", f"/v1/topics/{topic}")
    assert status == 200, reply


def test_a_dry_run_shows_the_records_and_writes_none(cluster):
    cluster.create_topic("t")
    end = cluster.image.offset
    status, reply = alter(cluster, "topic", "t", (MIN_ISR, "2"), body={"dryRun": True})
    assert (status, reply["dryRun"]) == (200, True)
    assert [record["data"]["name"] for record in reply["records"]] == [MIN_ISR]
    assert cluster.image.offset == end


def test_a_change_keeps_its_reason_and_is_made_once(cluster):
    cluster.create_topic("t")
    status, first = alter(
        cluster, "topic", "t", (MIN_ISR, "2"), headers={"x-logberg-reason": "two copies"}
    )
    assert status == 200
    header = cluster.batches()[-1].header
    assert (header.provenance.operation, header.provenance.reason) == ("AlterConfigs", "two copies")
    end = cluster.image.offset
    again = alter(
        cluster,
        "topic",
        "t",
        (MIN_ISR, "2"),
        headers={"x-logberg-request-id": first["requestId"]},
    )
    assert again == (200, first)
    assert cluster.image.offset == end


def test_where_a_value_comes_from(cluster):
    cluster.create_topic("t")
    assert shown(cluster, "topic", "t")[MIN_ISR]["source"] == "DEFAULT_CONFIG"
    alter(cluster, "broker", "default", (MIN_ISR, "3"))
    alter(cluster, "topic", "t", (MIN_ISR, "2"))
    entry = shown(cluster, "topic", "t")[MIN_ISR]
    assert (entry["value"], entry["source"]) == ("2", "DYNAMIC_TOPIC_CONFIG")
    assert [each["source"] for each in entry["synonyms"]] == [
        "DYNAMIC_TOPIC_CONFIG",
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "DEFAULT_CONFIG",
    ]
    alter(cluster, "topic", "t", (MIN_ISR, None, "delete"))
    entry = shown(cluster, "topic", "t")[MIN_ISR]
    assert (entry["value"], entry["source"]) == ("3", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    assert shown(cluster, "broker", "default").keys() == {MIN_ISR}


def test_the_controllers_own_settings_count():
    cluster = Cluster(nodes=1, configs={"log.retention.hours": "2"}, min_insync_replicas=2)
    cluster.online(1, 2, 3)
    cluster.create_topic("t")
    found = shown(cluster, "topic", "t")
    entry = found["retention.ms"]
    assert (entry["value"], entry["source"]) == ("7200000", "STATIC_BROKER_CONFIG")
    assert (found[MIN_ISR]["value"], found[MIN_ISR]["source"]) == ("2", "STATIC_BROKER_CONFIG")


SECRET = "listener.name.external.ssl.keystore.password"


@pytest.mark.parametrize(
    "key", [SECRET, "my.own.key", "listener.name.x.ssl.truststore.certificates"]
)
def test_sensitive_values_are_never_shown(cluster, key):
    status, reply = alter(cluster, "broker", "1", (key, "hunter2"), body={"dryRun": True})
    assert status == 200
    if key != "my.own.key":  # Nothing says that this is a secret. Only describe is careful with it.
        assert "hunter2" not in json.dumps(reply)
    status, reply = alter(cluster, "broker", "1", (key, "hunter2"))
    assert "hunter2" not in json.dumps(reply)
    entry = shown(cluster, "broker", "1")[key]
    assert (entry["value"], entry["sensitive"]) == (None, True)
    assert "hunter2" not in json.dumps(entry)


def test_resources_are_listed_page_by_page(cluster):
    names = [f"t-{n}" for n in range(5)]
    for name in names:
        cluster.create_topic(name, configs={"retention.ms": "5"})
    cluster.create_topic("none")
    alter(cluster, "broker", "default", (MIN_ISR, "2"))
    alter(cluster, "broker", "2", ("background.threads", "2"))
    alter(cluster, "group", "g", ("share.isolation.level", "read_committed"))
    wanted = [("topic", name) for name in names]
    wanted += [("broker", "default"), ("broker", "2"), ("group", "g")]
    for query, expected in (
        ({}, wanted),
        ({"type": "topic"}, wanted[:5]),
        ({"type": "broker"}, wanted[5:7]),
        ({"type": "client-metrics"}, []),
    ):
        found, more = [], {}
        while more is not None:
            status, reply = cluster.ask("GET", "/v1/configs", query={"limit": "2", **query, **more})
            assert status == 200
            found += [(each["resourceType"], each["resourceName"]) for each in reply["resources"]]
            token = reply["continuation"]
            more = None if token is None else {"continuation": token}
        assert found == expected
    assert cluster.ask("GET", "/v1/configs", query={"type": "x"})[0] == 400


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("topic/none", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("broker/77", "BROKER_ID_NOT_REGISTERED"),
        ("broker/x", "INVALID_REQUEST"),
        ("moon/x", "INVALID_REQUEST"),
    ],
)
def test_what_can_not_be_described(shared, path, code):
    assert shared.ask("GET", f"/v1/configs/{path}")[1]["code"] == code


def test_a_topic_is_created_with_its_configs_in_one_batch(cluster):
    end = cluster.image.offset
    reply = cluster.create_topic(
        "t", partitions=2, factor=1, configs={"retention.ms": "5", "flush.ms": "9"}
    )
    topic, *rest = written(cluster, end)
    assert isinstance(topic, TopicRecord)
    assert rest[:2] == [
        ConfigRecord(TOPIC, "t", "flush.ms", "9"),
        ConfigRecord(TOPIC, "t", "retention.ms", "5"),
    ]
    assert all(isinstance(record, PartitionRecord) for record in rest[2:])
    created = reply["topics"][0]
    assert (created["numPartitions"], created["replicationFactor"]) == (2, 1)
    delete(cluster, "t")
    assert cluster.ask("GET", "/v1/configs")[1]["resources"] == []


@pytest.mark.parametrize(
    ("configs", "says"),
    [
        ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
        ({"retention.ms": "x"}, "Not a number of type LONG"),
        ({"foo": "1"}, "Unknown topic config name: foo"),
    ],
)
def test_a_topic_with_a_bad_config_is_not_created(cluster, configs, says):
    topics = [{"name": "bad", "configs": configs}, {"name": "good"}]
    status, reply = cluster.ask("POST", "/v1/topics", {"topics": topics})
    assert status == 200
    error = reply["topics"][0]["error"]
    assert error["code"] == "INVALID_CONFIG"
    assert says in error["message"]
    assert error["details"] == {"config": next(iter(configs))}
    assert reply["topics"][1]["error"] is None
    assert cluster.image.topics.named("bad") is None


# -- what a change does to partitions -------------------------------------------------------------


def leaderless(cluster):
    """Leave topic t without a leader: broker 1 has all the data, and only broker 2 is online."""
    brokers = [Broker(cluster, n).bring_online() for n in (1, 2)]
    cluster.assign("t", [1, 2])
    keep_alive(cluster, brokers[:1], SESSION_S + 2)
    assert cluster.partition("t").isr == (1,)
    brokers[1].bring_online()
    keep_alive(cluster, brokers[1:], SESSION_S + 2)
    assert cluster.partition("t").leader == -1
    return brokers


@pytest.mark.parametrize(("kind", "name"), [("topic", "t"), ("broker", "default"), ("broker", "9")])
def test_a_leader_is_elected_once_unclean_elections_are_allowed(kind, name):
    cluster = Cluster(nodes=1)
    leaderless(cluster)
    if name == "9":
        name = "1"  # The controller: its configs count as those of a broker.
    status, reply = alter(cluster, kind, name, (UNCLEAN, "true"))
    assert status == 200, reply
    cluster.run_until(lambda: cluster.partition("t").leader == 2)
    assert cluster.partition("t").leader_recovery_state == 1
    header = cluster.batches()[-1].header
    assert header.provenance.operation == "ElectLeaders"
    assert header.provenance.reason == "unclean elections may be allowed now"


def test_an_unclean_election_waits_while_another_key_or_value_is_written():
    cluster = Cluster(nodes=1)
    leaderless(cluster)
    alter(cluster, "topic", "t", ("retention.ms", "5"), (UNCLEAN, "false"))
    alter(cluster, "broker", "default", (UNCLEAN, "true"))
    cluster.run(2)
    assert cluster.partition("t").leader == -1, "the topic's own value counts"


def elr_on(cluster):
    update = {"feature": ELR, "maxVersionLevel": 1, "upgradeType": "upgrade"}
    status, reply = cluster.ask("POST", "/v1/features", {"updates": [update]})
    assert status == 200, reply


def elr_cluster(**config):
    cluster = Cluster(nodes=1, **config)
    brokers = [Broker(cluster, n, features=DECLARED).bring_online() for n in (1, 2, 3)]
    return cluster, brokers


def test_elr_is_switched_on_with_one_min_isr_for_all_brokers():
    cluster, _ = elr_cluster(min_insync_replicas=2)
    alter(cluster, "broker", "1", (MIN_ISR, "3"))
    alter(cluster, "broker", "3", ("background.threads", "3"))
    end = cluster.image.offset
    elr_on(cluster)
    assert written(cluster, end)[:2] == [
        ConfigRecord(BROKER, "", MIN_ISR, "2"),
        ConfigRecord(BROKER, "1", MIN_ISR, None),
    ]
    assert shown(cluster, "broker", "default")[MIN_ISR]["value"] == "2"
    assert alter(cluster, "broker", "1", (MIN_ISR, "3"))[1]["code"] == "INVALID_CONFIG"


@pytest.mark.parametrize("of", [("topic", "t"), ("broker", "default")])
def test_elr_follows_the_effective_min_isr(of):
    """A replica that leaves a too small ISR is eligible; too small is what the config says."""
    cluster, brokers = elr_cluster()
    elr_on(cluster)
    cluster.create_topic("t", factor=3)
    alter(cluster, *of, (MIN_ISR, "3"))
    keep_alive(cluster, brokers[:2], SESSION_S + 2)
    assert cluster.partition("t").elr == (3,)
    alter(cluster, *of, (MIN_ISR, "2"))
    assert cluster.partition("t").elr == ()


# -- policies -------------------------------------------------------------------------------------


class Judge:
    """Refuses what is called `no`, fails over what is called `broken`, and keeps the rest."""

    def __init__(self):
        self.judged = []

    def validate(self, proposed):
        self.judged.append(proposed)
        name = getattr(proposed, "name", None) or proposed.resource_name
        if name == "no":
            raise PolicyViolationError("not here")
        if name == "broken":
            raise KeyError("x")


def test_policies_refuse_topics_and_configs():
    topics, configs = Judge(), Judge()
    cluster = Cluster(nodes=1, policies=Policies(topics, configs))
    cluster.online(1)
    status, reply = cluster.ask(
        "POST",
        "/v1/topics",
        {
            "topics": [
                {"name": name, "replicationFactor": 1, "configs": {"retention.ms": "5"}}
                for name in ("yes", "no", "broken")
            ]
        },
    )
    codes = [each["error"] and each["error"]["code"] for each in reply["topics"]]
    assert codes == [None, "POLICY_VIOLATION", "UNKNOWN_SERVER_ERROR"]
    assert "not here" in reply["topics"][1]["error"]["message"]
    assert topics.judged[0]._asdict() == {
        "name": "yes",
        "num_partitions": 1,
        "replication_factor": 1,
        "assignments": None,
        "configs": {"retention.ms": "5"},
    }
    assert cluster.image.topics.named("no") is None
    cluster.write(TopicRecord("no", b"n" * 16))
    status, reply = alter(cluster, "topic", "no", (MIN_ISR, "2"))
    assert (status, reply["code"]) == (400, "POLICY_VIOLATION")
    assert alter(cluster, "topic", "yes", ("retention.ms", "5"), (MIN_ISR, "2"))[0] == 200
    assert configs.judged[-1]._asdict() == {
        "resource_type": "topic",
        "resource_name": "yes",
        "configs": {MIN_ISR: "2"},
    }, "a policy judges what changes"
