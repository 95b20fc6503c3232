"""What a change says of its steps, and which requests are traced."""

import pytest

from tests.unit.controller.cluster import Cluster

TRACED = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


class Trace:
    """Notes what is said."""

    def __init__(self, name):
        self.said = [name]

    def step(self, name):
        self.said.append(name)

    def end(self, status):
        self.said.append(status)


class Traces:
    """`runtime.tracing.Tracing` that keeps all traces."""

    def __init__(self):
        self.all = []
        self.parents = []

    def begin(self, method, route, headers, request_id):
        self.all.append(Trace(f"{method} {route}"))
        self.parents.append(headers.get("traceparent", ""))
        return self.all[-1]


@pytest.fixture
def cluster():
    cluster = Cluster(1, tracing=Traces())
    cluster.online(1)
    cluster.tracing.all.clear()
    cluster.tracing.parents.clear()
    return cluster


def create(cluster, name, headers=None, **more):
    topic = {"name": name, "numPartitions": 1, "replicationFactor": 1}
    body = {"topics": [topic], **more}
    return cluster.ask("POST", "/v1/topics", body, headers=headers or {})


def test_a_change_waits_is_decided_proposed_and_committed(cluster):
    assert create(cluster, "a", TRACED)[0] == 200
    (trace,) = cluster.tracing.all
    steps = ["POST /v1/topics", "wait", "decide", "propose", "commit", "answer", 200]
    assert trace.said == steps
    assert cluster.tracing.parents == [TRACED["traceparent"]]


def test_a_refused_change_is_not_proposed(cluster):
    body = {"configs": [{"name": "retention.ms", "value": "1000"}]}
    status, _ = cluster.ask("PATCH", "/v1/configs/topic/none", body)
    assert status == 404
    assert cluster.tracing.all[0].said[1:] == ["wait", "decide", "answer", 404]


def test_reads_are_traced_if_their_caller_traces_them(cluster):
    assert cluster.ask("GET", "/v1/topics")[0] == 200
    assert cluster.tracing.all == []
    assert cluster.ask("GET", "/v1/topics", headers=TRACED)[0] == 200
    assert [trace.said for trace in cluster.tracing.all] == [["GET /v1/topics", 200]]


def test_a_repeat_is_answered_without_a_decision(cluster):
    status, made = create(cluster, "a")
    assert status == 200
    again = {"x-logberg-request-id": made["requestId"]}
    assert create(cluster, "a", again)[0] == 200
    assert cluster.tracing.all[1].said == ["POST /v1/topics", 200]


def test_each_of_many_changes_in_one_request_has_its_own_steps(cluster):
    changes = [
        {"method": "POST", "path": "/v1/topics", "body": {"topics": [{"name": name}]}}
        for name in ("a", "b")
    ]
    status, _ = cluster.ask("POST", "/v1/changes", {"changes": changes}, headers=TRACED)
    assert status == 200
    whole, *parts = cluster.tracing.all
    assert whole.said == ["POST /v1/changes", 200]
    assert [part.said[0] for part in parts] == ["POST /v1/topics"] * 2
    assert cluster.tracing.parents == [TRACED["traceparent"]] * 3
