"""The feature levels at which a new log begins (ADR 0039)."""

import pytest

from metadata.codec import decode_records
from metadata.features import (
    BASE,
    ELR_VERSION,
    LOGBERG_VERSION,
    METADATA_VERSION,
    SUPPORTED,
    Levels,
    first_levels,
    wrong_first_levels,
)
from metadata.records import BeginEpochRecord, ConfigRecord, FeatureLevelRecord
from tests.unit.controller.cluster import Cluster

NEWEST = {name: SUPPORTED[name].high for name in BASE}
LOW = ((LOGBERG_VERSION, 1, 1), (METADATA_VERSION, 21, 30))
NEW = tuple((name, *levels) for name, levels in SUPPORTED.items())


def forming(**config):
    """Make controllers that have not begun a log."""
    return Cluster(leader=None, **config)


def silence(cluster, node_id):
    """Let a voter announce nothing, as release 0.1. Returns what it announced."""
    node = cluster.shared.nodes[node_id]
    announced = node.announcement
    node.announce(b"")
    cluster.run(3.0)
    return announced


def begin(cluster, node_id=1):
    cluster.processes[node_id].run(lambda: cluster.shared.lead(node_id))
    cluster.run(3.0)


def first_batch(cluster):
    return list(decode_records(cluster.batches()[0].records))


def levels_in(records):
    return {r.name: r.feature_level for r in records if isinstance(r, FeatureLevelRecord)}


@pytest.mark.parametrize(
    ("chosen", "declared", "levels"),
    [
        ({}, (), NEWEST),
        ({}, (NEW, NEW, NEW), NEWEST),
        ({}, (NEW, LOW, NEW), {LOGBERG_VERSION: 1, METADATA_VERSION: 30}),
        ({}, (NEW, ()), BASE),
        ({METADATA_VERSION: 25}, (NEW,), {**NEWEST, METADATA_VERSION: 25}),
        ({METADATA_VERSION: 32}, (LOW,), {LOGBERG_VERSION: 1, METADATA_VERSION: 32}),
        ({ELR_VERSION: 1}, (NEW,), {**NEWEST, ELR_VERSION: 1}),
        (BASE, (NEW,), BASE),
    ],
    ids=[
        "nobody else",
        "all are equal",
        "one is older",
        "one declares nothing",
        "the operator names one",
        "the operator's word goes before a voter's",
        "a feature that is off where nobody names it",
        "the operator names all",
    ],
)
def test_the_newest_level_that_all_voters_support(chosen, declared, levels):
    assert first_levels(chosen, declared) == dict(levels)


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({}, ""),
        (BASE, ""),
        ({ELR_VERSION: 1}, ""),
        ({METADATA_VERSION: 34}, "metadata.version 34: this build supports 21 to 33"),
        ({LOGBERG_VERSION: 0}, "logberg.version 0: this build supports 1 to"),
        ({"no.such": 1}, "there is no feature 'no.such'; this build knows"),
        ({ELR_VERSION: 1, METADATA_VERSION: 22}, "needs metadata.version 23 (4.0-IV1), not 22"),
    ],
)
def test_levels_that_can_not_be_chosen_are_refused_at_the_start(chosen, why):
    found = wrong_first_levels(chosen)
    assert (why in found) if why else not found


def test_a_new_log_has_its_levels_in_the_first_batch():
    cluster = forming()
    begin(cluster)
    records = first_batch(cluster)
    assert isinstance(records[0], BeginEpochRecord)
    assert levels_in(records) == NEWEST
    assert not cluster.events("first_levels_wait")


def test_a_voter_of_an_older_build_lowers_the_levels(monkeypatch):
    cluster = forming()
    cluster.kill(3)
    with monkeypatch.context() as older:
        older.setitem(SUPPORTED, LOGBERG_VERSION, Levels(1, 1))
        older.setitem(SUPPORTED, METADATA_VERSION, Levels(21, 30))
        cluster.start(3)
    cluster.run(0.5)
    begin(cluster)
    assert levels_in(first_batch(cluster)) == {LOGBERG_VERSION: 1, METADATA_VERSION: 30}


def test_the_log_does_not_begin_before_each_voter_was_heard():
    cluster = forming()
    announced = silence(cluster, 3)
    begin(cluster)
    assert not cluster.leader.active
    assert cluster.leader.ledger.log_end == 0
    (warning,) = cluster.events("first_levels_wait")
    assert "these are silent: 3" in warning["reason"]
    assert (
        'initial_features = { "logberg.version" = 1, "metadata.version" = 21 }'
        in (warning["reason"])
    )
    status, reply = cluster.ask("POST", "/v1/topics", {"topics": [{"name": "t"}]})
    assert (status, reply["message"]) == (503, warning["reason"])
    status, reply = cluster.ask("GET", "/health/ready")
    assert (status, reply["reason"]) == (503, warning["reason"])
    cluster.shared.nodes[3].announce(announced)
    cluster.run_until(cluster.registered)
    assert levels_in(first_batch(cluster)) == NEWEST


def test_a_voter_that_came_back_with_an_empty_folder_is_heard():
    """It does not vote. What its release supports doesn't depend on its folder."""
    cluster = forming()
    announced = silence(cluster, 3)
    begin(cluster)
    cluster.controllers[1].on_digest(3, announced, False)
    cluster.run_until(lambda: cluster.leader.active)
    assert levels_in(first_batch(cluster)) == NEWEST


def test_another_leader_begins_the_log_where_the_first_one_waited():
    cluster = forming()
    announced = silence(cluster, 3)
    begin(cluster)
    begin(cluster, 2)
    cluster.shared.nodes[3].announce(announced)
    cluster.run_until(cluster.registered)
    begins = [r for r in cluster.records() if isinstance(r, BeginEpochRecord)]
    assert [record.leader_id for record in begins] == [2]
    assert len([r for r in cluster.records() if isinstance(r, FeatureLevelRecord)]) == len(BASE)


def test_an_announcement_of_long_ago_does_not_count():
    """The voter may run another release by now."""
    cluster = forming()
    cluster.run(1.0)
    silence(cluster, 3)
    begin(cluster)
    assert not cluster.leader.active


def test_nobody_is_waited_for_where_the_operator_names_all_levels():
    cluster = forming(initial_features=BASE)
    silence(cluster, 3)
    begin(cluster)
    assert levels_in(first_batch(cluster)) == dict(BASE)


def test_a_new_log_may_begin_with_eligible_leader_replicas():
    cluster = forming(initial_features={ELR_VERSION: 1}, min_insync_replicas=2)
    begin(cluster)
    records = first_batch(cluster)
    assert levels_in(records) == {**NEWEST, ELR_VERSION: 1}
    assert [(r.name, r.value) for r in records if isinstance(r, ConfigRecord)] == [
        ("min.insync.replicas", "2")
    ]


def test_the_setting_is_without_effect_on_a_log_that_has_begun():
    cluster = forming()
    begin(cluster)
    cluster.kill(2)
    cluster.config["initial_features"] = BASE
    cluster.start(2)
    cluster.lead(2)
    cluster.run_until(cluster.registered)
    assert len([r for r in cluster.records() if isinstance(r, FeatureLevelRecord)]) == len(BASE)


def test_the_only_controller_waits_for_nobody():
    cluster = forming(nodes=1)
    cluster.lead(1)
    assert levels_in(first_batch(cluster)) == NEWEST
