"""Counts how much work on 50,000 partitions is done between two yields.

`make lateness` measures processor time, on real processes and 1,000,000 partitions.
"""

from collections.abc import Callable, Generator
from typing import Any

import pytest

from benchmarks.lateness.coverage import not_driven
from controller.http.routes import ROUTES
from controller.managers.deletions import ROUND_TOPICS
from controller.managers.passes import Pass
from controller.managers.sweep import ROUND, Sweep
from controller.managers.topics import TopicManager
from metadata.features import ELR_VERSION, METADATA_VERSION
from metadata.image import MetadataDelta
from metadata.messages import (
    ALTERED_MAX,
    AlterConfigsRequest,
    AlterPartitionRequest,
    ApplyRequest,
    ConfigChange,
    ConfigResourceChange,
    CreateTopicsRequest,
    DeclaredKind,
    DeclaredTopic,
    DeleteTopicsRequest,
    ElectionType,
    ElectLeadersRequest,
    IsrMember,
    NewTopic,
    PartitionToAlter,
    TopicToAlter,
)
from metadata.records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
)
from runtime.http.requests import Caller, Request
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.slice_counter import LIMIT, Counter, counting, sliced

WIDE, SMALL = 30_000, 2_000
PARTITIONS = WIDE + 10 * SMALL

ASKED: dict[str, list[tuple[str, dict[str, str]]]] = {
    "list_snapshots": [("/v1/snapshots", {}), ("/v1/snapshots", {"upTo": "9", "limit": "1"})],
    "read_snapshot": [("/v1/snapshots/0", {})],
    "list_segments": [("/v1/segments", {}), ("/v1/segments", {"fromBase": "9", "limit": "1"})],
    "read_segment": [("/v1/segments/0", {})],
    "read_signed_head": [("/checkpoint", {})],
    "read_tile": [("/tile/0/000.p/1", {}), ("/tile/entries/000.p/1", {})],
    "make_proof": [("/v1/proofs/0", {}), ("/v1/proofs/0", {"olderSize": "1"})],
    "describe_erasures": [("/v1/erasures", {})],
    "read_subject_keys": [("/v1/subject-keys", {})],
    "list_pseudonyms": [("/v1/pseudonyms", {}), ("/v1/pseudonyms", {"name": "a"})],
    "list_topics": [
        ("/v1/topics", {}),
        ("/v1/topics", {"limit": "1"}),
        ("/v1/topics", {"after": "zz", "consistency": "stale"}),
    ],
    "describe_topic": [("/v1/topics/wide", {}), ("/v1/topics/wide", {"limit": "10"})],
    "list_brokers": [("/v1/brokers", {}), ("/v1/brokers", {"limit": "1", "minOffset": "1"})],
    "describe_broker": [("/v1/brokers/1", {})],
    "explain_broker": [("/v1/brokers/1/explain", {})],
    "list_partitions": [
        ("/v1/partitions", {}),
        ("/v1/partitions", {"topic": "wide", "limit": "7"}),
        ("/v1/partitions", {"leaderless": "true"}),
        ("/v1/partitions", {"underReplicated": "true"}),
    ],
    "describe_partition": [("/v1/partitions/wide/29999", {})],
    "list_reassignments": [("/v1/reassignments", {})],
    "plan_reassignments": [("/v1/reassignments/plan", {"brokers": "1"})],
    "lose_brokers": [
        ("/v1/what-if/loss", {"brokers": "1,2"}),
        ("/v1/what-if/loss", {"brokers": "1", "all": "true"}),
    ],
    "describe_quorum": [("/v1/quorum", {})],
    "list_head_keys": [("/v1/quorum/head-keys", {})],
    "status": [("/v1/status", {})],
    "describe_caller": [("/v1/caller", {})],
    "list_configs": [("/v1/configs", {}), ("/v1/configs", {"type": "topic", "limit": "10"})],
    "describe_config": [("/v1/configs/topic/wide", {}), ("/v1/configs/broker/1", {})],
    "describe_bridge": [("/v1/bridge", {})],
    "list_features": [("/v1/features", {})],
    "list_quotas": [("/v1/quotas", {}), ("/v1/quotas", {"userMatch": "any", "limit": "1"})],
    "resolve_quotas": [("/v1/quotas/resolve", {"user": "a", "clientId": "c", "ip": "10.0.0.1"})],
    "list_users": [("/v1/users", {})],
    "describe_user": [("/v1/users/nobody", {})],
    "list_tokens": [("/v1/tokens", {}), ("/v1/tokens", {"owner": "User:a"})],
    "list_access_tokens": [
        ("/v1/access-tokens", {}),
        ("/v1/access-tokens", {"principal": "User:a"}),
    ],
    "list_join_tokens": [("/v1/join-tokens", {})],
    "list_revocations": [("/v1/revocations", {})],
    "authority": [("/v1/authority", {})],
    "list_acls": [("/v1/acls", {}), ("/v1/acls", {"principal": "User:a", "limit": "1"})],
    "check_acl": [
        (
            "/v1/acls/check",
            {
                "principal": "User:a",
                "operation": "READ",
                "resourceType": "TOPIC",
                "resourceName": "n" * 249,
            },
        )
    ],
    "list_sessions": [
        ("/v1/coordination/sessions", {}),
        ("/v1/coordination/sessions", {"sessionId": "AAAAAAAAAAAAAAAAAAAAAA"}),
    ],
    "list_entries": [
        ("/v1/coordination/entries", {"kind": "lock", "name": "n"}),
        ("/v1/coordination/entries", {"kind": "lock"}),
        ("/v1/coordination/entries", {"sessionId": "AAAAAAAAAAAAAAAAAAAAAA"}),
    ],
    "get_key": [("/v1/coordination/key", {"key": "k"})],
    "list_keys": [("/v1/coordination/keys", {"prefix": "k", "limit": "1"})],
    "coordination_limits": [("/v1/coordination/limits", {})],
    "export": [
        ("/v1/export", {}),
        ("/v1/export", {"kinds": "topics", "assignments": "true", "limit": "5"}),
        ("/v1/export", {"kinds": "configs,users", "limit": "1"}),
    ],
    "read_log": [
        ("/v1/log", {"maxBytes": "8388608", "format": "json"}),
        ("/v1/log", {"maxBytes": "8388608"}),
        ("/v1/log", {"offset": "9", "maxBytes": "1"}),
    ],
    "watch_resource": [
        ("/v1/watch", {"resource": "topic:wide", "from": "0"}),
        ("/v1/watch", {"resource": "broker:1", "from": "0"}),
    ],
    "live": [("/health/live", {})],
    "ready": [("/health/ready", {})],
    "metrics": [("/metrics", {})],
    "openapi_document": [("/v1/openapi.json", {})],
}

WALKS = ("/v1/reassignments/plan", "/v1/what-if/loss")
"""What looks at all replicas of some brokers, in slices."""


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return counting(monkeypatch)


@pytest.fixture(scope="module")
def cluster() -> Any:
    made = Cluster(nodes=1)
    for broker_id in (1, 2, 3):
        made.online(broker_id)
    made.create_topic("wide", partitions=WIDE)
    for start in range(0, SMALL, 500):
        topics = [{"name": f"t-{n}", "numPartitions": 10} for n in range(start, start + 500)]
        status, _ = made.ask("POST", "/v1/topics", {"topics": topics})
        assert status == 200
    assert len(made.image.topics.partitions) == PARTITIONS
    return made


def all_rounds(
    topics: TopicManager, image: Any, names: tuple[str, ...]
) -> Generator[None, None, None]:
    """Delete topics in rounds. Each round is as long as if the one before it were written."""
    deletion = topics.deletion(DeleteTopicsRequest(names=names))
    unfinished = True
    while unfinished:
        result = yield from deletion.decide(image)
        yield
        assert len(result.records) <= ROUND_TOPICS
        unfinished = result.unfinished
        if result.round_answer is not None:
            deletion.resume(result.round_answer.body)
    assert deletion.number == len(names) // ROUND_TOPICS


def test_every_route_that_reads_is_asked() -> None:
    """A new route needs a row in the table above."""
    assert set(ASKED) == {route.name for route in ROUTES if route.method == "GET"}


def test_every_route_and_record_has_a_load() -> None:
    """`make lateness` sends every kind of request, to a million partitions."""
    assert not_driven() == []


@pytest.mark.parametrize(
    ("path", "query"), [ask for asks in ASKED.values() for ask in asks], ids=str
)
def test_reading_looks_at_little_in_one_slice(
    cluster: Any, counter: Counter, path: str, query: dict[str, str]
) -> None:
    replies: list[Any] = []
    request = Request("GET", path, query=query, caller=Caller())
    controller = cluster.controllers[1]
    cluster.processes[1].run(lambda: controller.handle(request, replies.append))
    cluster.run_until(lambda: bool(replies))
    counter.slice_ends()
    size = len(replies[0].body)
    for part in replies[0].parts or ():
        size += len(part)
        counter.slice_ends()
    assert size
    assert counter.most <= LIMIT
    if path == "/v1/topics/wide" and not query:
        assert counter.total >= WIDE, "the counter doesn't see what is looked at"
    elif path in WALKS:
        assert counter.total >= PARTITIONS, "the counter doesn't see what is looked at"
    elif query.get("format") == "json":
        assert counter.total >= PARTITIONS, "the counter doesn't see what is put into words"
    else:
        # What asks for a page, or for a sum, costs the page and no walk over partitions.
        assert counter.total <= 2 * LIMIT


@pytest.mark.parametrize(
    "decide",
    [
        lambda topics, image: topics.create(
            image, CreateTopicsRequest(topics=(NewTopic("a", PARTITIONS, 3),))
        ),
        lambda topics, image: topics.create(
            image, CreateTopicsRequest(topics=tuple(NewTopic(f"n{n}", 1) for n in range(5_000)))
        ),
        lambda topics, image: all_rounds(topics, image, tuple(f"t-{n}" for n in range(SMALL))),
        lambda topics, image: topics.deletion(
            DeleteTopicsRequest(names=tuple(f"t-{n}" for n in range(SMALL)), dry_run=True)
        ).decide(image),
        lambda topics, image: topics.deletion(
            DeleteTopicsRequest(names=tuple(f"t-{n}" for n in range(SMALL)))
        ).partitions(image),
    ],
    ids=[
        "one large topic",
        "many topics",
        "many deletions",
        "many deletions shown",
        "many counted",
    ],
)
def test_deciding_looks_at_little_in_one_slice(
    cluster: Any,
    counter: Counter,
    decide: Callable[[TopicManager, Any], Generator[None, None, Any]],
) -> None:
    topics = cluster.controllers[1]._leader.topics
    decision = decide(topics, cluster.image)
    for _ in decision:
        counter.slice_ends()
    counter.slice_ends()
    assert counter.total > 1_000
    assert counter.most <= LIMIT


def test_an_apply_costs_what_is_declared_and_deletions_cost_the_topics(
    cluster: Any, counter: Counter
) -> None:
    declared = cluster.leader._leader.declared
    same = tuple(DeclaredTopic(f"t-{n}", 10, 3) for n in range(SMALL))
    more = tuple(DeclaredTopic(f"t-{n}", 11, configs={"retention.ms": "5"}) for n in range(SMALL))
    new = tuple(DeclaredTopic(f"n-{n}", 2) for n in range(SMALL))
    kinds = (DeclaredKind.TOPICS,)
    wide = SMALL + 1
    for request, records in (
        (ApplyRequest(), 0),
        (ApplyRequest(same), 0),
        (ApplyRequest(more), 2 * SMALL),
        (ApplyRequest(new), 3 * SMALL),
        (ApplyRequest(prune=kinds, delete_topics=True), wide),
    ):
        counter.now = counter.most = counter.total = 0
        sliced(counter, declared.touches(cluster.image, request))
        result = sliced(counter, declared.apply(cluster.image, request))
        assert result.reply.refused == 0, result.reply
        assert len(result.records) == records
        assert counter.most <= LIMIT
        assert counter.total <= 32 * (len(request.topics) or records)


def test_a_change_of_isrs_costs_its_partitions_whatever_else_there_is(
    cluster: Any, counter: Counter
) -> None:
    image = cluster.image
    topic = image.topics.named("wide")
    led = [n for n in range(WIDE) if image.topics.partitions[topic.topic_id, n].leader == 1]
    wanted = tuple(PartitionToAlter(n, 0, 0, (IsrMember(1),)) for n in led[:ALTERED_MAX])
    request = AlterPartitionRequest(
        "a-test-cluster",
        1,
        image.cluster.brokers[1].broker_epoch,
        (TopicToAlter(wanted, topic_name="wide"),),
    )
    counter.slice_ends()
    counter.total = counter.most = 0
    result = sliced(counter, cluster.leader._leader.isrs.alter(image, request))
    assert len(result.records) == ALTERED_MAX
    assert counter.most <= LIMIT
    assert ALTERED_MAX < counter.total <= 12 * ALTERED_MAX


def test_elections_look_at_what_needs_one_and_at_nothing_else(
    cluster: Any, counter: Counter
) -> None:
    elections = cluster.leader._leader.elections
    for kind in ElectionType:
        result = sliced(counter, elections.elect(ElectLeadersRequest(kind)).decide(cluster.image))
        assert (result.records, result.reply.elected) == ([], 0)
    assert not sliced(counter, elections.balance(cluster.image, Pass(1_000, 4_096))).records
    assert counter.total < 50


def resources(count: int, key: str = "retention.ms") -> AlterConfigsRequest:
    change = (ConfigChange(key, "5"),)
    return AlterConfigsRequest(
        tuple(ConfigResourceChange("topic", f"t-{n}", change) for n in range(count))
    )


ALL_BROKERS = AlterConfigsRequest(
    (ConfigResourceChange("broker", "default", (ConfigChange("min.insync.replicas", "2"),)),)
)


@pytest.mark.parametrize(
    ("request_", "most_in_all"),
    [(resources(SMALL), 100 * SMALL), (resources(1), 100), (ALL_BROKERS, 100)],
    ids=["many topics", "one topic", "all brokers"],
)
def test_a_change_of_configs_costs_what_it_changes(
    cluster: Any, counter: Counter, request_: AlterConfigsRequest, most_in_all: int
) -> None:
    """However many partitions there are."""
    sliced(counter, cluster.leader._leader.configs.alter(cluster.image, request_))
    assert counter.most <= LIMIT
    assert 0 < counter.total <= most_in_all


def test_elrs_are_cleared_in_slices(cluster: Any, counter: Counter) -> None:
    """A new min ISR of all brokers concerns every partition that has an ELR: here, all of them."""
    image = cluster.image
    topics = image.topics
    broken = [
        PartitionChangeRecord(number, topic_id, isr=(1,), leader=1, eligible_leader_replicas=(2,))
        for topic_id, _ in topics.by_id.unordered_items()
        for number in topics.ids_of(topic_id)
    ]
    delta = MetadataDelta(image)
    levels = [FeatureLevelRecord(METADATA_VERSION, 30), FeatureLevelRecord(ELR_VERSION, 1)]
    delta.replay_all([*levels, *broken], image.offset)
    delta.finish_batch(image.offset + len(broken) + 2, image.epoch, image.timestamp_ms)
    lacking = delta.apply()
    sweep, manager = Sweep(ROUND), cluster.controllers[1]._leader.configs
    counter.now = counter.most = counter.total = 0
    for _ in range(3):
        result = sliced(counter, manager.alter(lacking, ALL_BROKERS, sweep))
        assert len(result.records) == ROUND
        assert result.unfinished
    assert counter.total > PARTITIONS, "every partition was looked at once, to put them in order"
    assert counter.total < 12 * PARTITIONS
    assert counter.most <= LIMIT
