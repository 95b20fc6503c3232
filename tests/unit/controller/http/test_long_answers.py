"""A long answer is built while it is sent, however few entries it has at the top."""

from typing import Any

import msgspec
import pytest

from runtime.http.requests import Caller, Reply, Request, whole
from tests.unit.controller.cluster import Cluster

PARTITIONS = 2_000
ELECTION = {"electionType": "PREFERRED", "dryRun": True}


@pytest.fixture(scope="module")
def cluster() -> Any:
    made: Any = Cluster(nodes=1)
    made.online(1, 2)
    for name, count in (("wide", PARTITIONS), ("small", 2)):
        made.assign(name, *[(1, 2)] * count)
    return made


def election(topic: str, count: int) -> tuple[str, str, dict[str, str], object]:
    wanted = [{"topic": topic, "partitions": list(range(count))}]
    return ("POST", "/v1/partitions/elect", {}, {**ELECTION, "topicPartitions": wanted})


@pytest.mark.parametrize(
    ("asked", "is_long"),
    [
        (election("wide", PARTITIONS), True),
        (election("small", 2), False),
        (("GET", "/v1/export", {"kinds": "topics", "assignments": "true"}, None), True),
        (("GET", "/v1/topics/wide", {}, None), True),
        (("GET", "/v1/topics/small", {}, None), False),
        (("GET", "/v1/topics", {}, None), False),
    ],
    ids=[
        *("election of many", "election of two", "export of a large topic"),
        *("large topic", "small topic", "two topics"),
    ],
)
def test_a_long_answer_is_not_built_at_once(
    cluster: Any, asked: tuple[str, str, dict[str, str], object], is_long: bool
) -> None:
    method, path, query, body = asked
    replies: list[Reply] = []
    encoded = b"" if body is None else msgspec.json.encode(body)
    request = Request(method, path, encoded, query, {}, Caller("User:alice", "token", ""))
    cluster.processes[1].run(lambda: cluster.controllers[1].handle(request, replies.append))
    cluster.run_until(lambda: bool(replies))
    assert (replies[0].parts is not None) == is_long
    begun = len(replies[0].body)
    text = whole(replies[0]).body
    assert msgspec.json.decode(text)
    assert begun < len(text) / 5 if is_long else begun == len(text)
