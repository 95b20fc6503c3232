"""Where people get no pseudonyms, names stay, or nothing is written."""

import itertools

import pytest

from metadata.features import BASE
from tests.unit.controller.erasure.test_addresses import bytes_of
from tests.unit.controller.people.people_bench import (
    ALICE,
    BOB,
    NAME,
    certificate,
    last_head,
    make_token,
    pseudonyms,
    with_people,
)


@pytest.fixture
def cluster():
    return with_people()


def test_below_the_level_names_stay(cluster):
    cluster = with_people(initial_features=BASE)
    assert make_topic(cluster, certificate()) == 200
    assert last_head(cluster).principal == ALICE


def make_topic(cluster, who):
    entity = [{"entityType": "user", "entityName": "ci"}]
    quota = {"entity": entity, "operations": [{"key": "producer_byte_rate", "value": 1.0}]}
    return cluster.ask("POST", "/v1/quotas", {"entries": [quota]}, caller=who)[0]


def test_before_the_keys_are_here_nothing_is_written_about_a_person():
    cluster = with_people(leader=None)
    cluster.lead(1)
    statuses = set()
    for turn in itertools.count():
        status, reply = make_token(cluster, certificate(), name=f"key-{turn}")
        statuses.add((status, reply.get("code")))
        if status == 200:
            break
        cluster.run(0.02)
    assert statuses >= {(429, "THROTTLED"), (200, None)}
    assert NAME.encode() not in bytes_of(cluster)


def test_what_has_pseudonyms_keeps_them_once_the_setting_is_gone(cluster):
    make_token(cluster, certificate())
    cluster.run(0.5)
    for node in (1, 2, 3):
        cluster.kill(node)
    cluster.config["pseudonyms"] = ()
    for node in (1, 2, 3):
        cluster.start(node)
    cluster.run(0.5)
    cluster.lead(1)
    cluster.run_until(lambda: not cluster.leader.awaits_subject_keys)
    make_token(cluster, certificate(), name="b-key")
    assert [last_head(cluster).principal] == pseudonyms(cluster)
    make_token(cluster, certificate(BOB), name="c-key")
    assert last_head(cluster).principal == BOB
