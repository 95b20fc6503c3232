"""What a controller answers to requests with a version, and to those without one."""

import json
from typing import Any

import msgspec
import pytest

from metadata.messages.versions import RANGE_HEADER, VERSION_HEADER
from runtime.http.requests import Request
from tests.unit.controller.cluster import Broker, Cluster

TOPIC = {"topics": [{"name": "t", "numPartitions": 1, "color": "blue"}], "mood": "good"}


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    made = Cluster()
    made.online(1, 2, 3)
    return made


def post(cluster: Cluster, version: str | None) -> tuple[int, dict[str, Any]]:
    said = {} if version is None else {VERSION_HEADER: version}
    return cluster.ask("POST", "/v1/topics", {**TOPIC, "dryRun": True}, headers=said)


@pytest.mark.parametrize("version", [None, "1"])
def test_a_field_that_is_mistyped_is_refused_as_in_release_0_1(cluster, version):
    status, reply = post(cluster, version)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert "unknown field" in reply["message"]


def test_a_field_of_a_newer_client_is_ignored_where_the_request_says_its_version(cluster):
    status, reply = post(cluster, "2")
    assert status == 200, reply
    assert [topic["name"] for topic in reply["topics"]] == ["t"]


@pytest.mark.parametrize("path", ["/v1/topics", "/v1/status", "/health/live", "/nowhere"])
def test_every_answer_says_which_versions_are_read(cluster, path):
    for node in (1, 2):
        replies = cluster.send("GET", path, node=node)
        cluster.run_until(lambda replies=replies: bool(replies))
        assert replies[0].headers[RANGE_HEADER] == "1-2"


def test_a_version_that_is_not_read_is_refused_with_the_range(cluster):
    replies = cluster.send("GET", "/v1/topics", headers={VERSION_HEADER: "3"})
    cluster.run_until(lambda: bool(replies))
    reply = json.loads(replies[0].body)
    assert (replies[0].status, reply["code"]) == (400, "UNSUPPORTED_VERSION")
    assert reply["details"] == {"minVersion": "1", "maxVersion": "2"}
    assert replies[0].headers[RANGE_HEADER] == "1-2"


def test_the_release_of_an_agent_is_shown_once_it_says_so_and_plain_text_only(cluster):
    broker = Broker(cluster, 4).bring_online()

    def shown() -> object:
        return cluster.ask("GET", "/v1/brokers/4")[1]["broker"]["software"]

    assert shown() is None
    broker.fetch(software="0.2.0")
    assert shown() == "0.2.0"
    broker.fetch(software="\x1b[31m0.2.0")
    assert shown() is None


def test_a_newer_agents_fields_are_ignored_in_its_one_call(cluster):
    broker = Broker(cluster, 5)
    fields = {**msgspec.to_builtins(broker.request()), "shape": {"round": True}}
    replies: list[Any] = []
    headers = {"content-type": "application/json", VERSION_HEADER: "2"}
    request = Request("POST", "/v1/metadata/fetch", json.dumps(fields).encode(), {}, headers)
    node = cluster.shared.leader
    cluster.processes[node].run(lambda: cluster.controllers[node].handle(request, replies.append))
    cluster.run_until(lambda: bool(replies))
    assert replies[0].status == 200, replies[0].body
