"""Refused attempts in the log: of every controller, once, exact, and behind everything else."""

from collections import Counter
from typing import Any

import pytest

from controller.config import AttemptRule
from controller.trail.reports import encode_report
from controller.trail.writing import OPERATION
from kafka_listener.asking.needed_rights import KAFKA_ACCESS
from metadata.features import ATTEMPTS_FROM, LOGBERG_VERSION
from metadata.records import AttemptDetail, AttemptOutcome, AttemptsRecord
from runtime.http.requests import Caller, Request
from runtime.sockets.attempts import Attempt
from tests.unit.controller.cluster import Cluster

pytestmark = pytest.mark.simulation

MALLORY = Caller("User:mallory", "token", "203.0.113.9")
ROOT = Caller("User:root", "token", "10.0.0.9")
TOPIC = {"name": "orders", "numPartitions": 1, "replicationFactor": 1}
CREATE = ("POST", "/v1/topics", {"topics": [TOPIC]})


def made(enforcement: str = "on", **config: Any) -> Any:
    return Cluster(authorization=enforcement, super_users=frozenset({"User:root"}), **config)


def refused(cluster: Any, times: int = 1, **options: Any) -> None:
    for _ in range(times):
        status, _ = cluster.ask(*CREATE, caller=MALLORY, **options)
        assert status == 403


def attempts(cluster: Any) -> list[AttemptsRecord]:
    return [record for record in cluster.records() if isinstance(record, AttemptsRecord)]


def counts(cluster: Any) -> Counter[int]:
    found: Counter[int] = Counter()
    for record in attempts(cluster):
        found[record.controller_id] += record.count
    return found


def test_a_record_says_who_tried_what_from_where_and_why_not() -> None:
    cluster = made()
    refused(cluster, 3)
    cluster.run(2)
    (record,) = attempts(cluster)
    assert record.controller_id == 1
    assert record.outcome == AttemptOutcome.REFUSED
    assert record.detail == AttemptDetail.METADATA
    assert (record.principal, record.auth_method) == ("User:mallory", "token")
    assert (record.operation, record.resource) == ("create_topics", "topic:orders")
    assert record.address == "203.0.113.9"
    assert record.code == "TOPIC_AUTHORIZATION_FAILED"
    assert record.reason == "CREATE on TOPIC orders"
    assert (record.count, record.total, record.number) == (3, 3, 1)
    assert record.request == record.client_id == record.body_sha256 == record.answer == ""
    (batch,) = [b for b in cluster.batches() if b.header.provenance.operation == OPERATION]
    assert batch.header.provenance.principal == "Controller:1"
    assert batch.header.timestamp_ms >= record.last_ms >= record.first_ms
    cluster.assert_equal()


def test_every_controller_reports_its_own_to_the_leader() -> None:
    cluster = made()
    for node, times in ((1, 2), (2, 3), (3, 5)):
        for _ in range(times):
            # A standby answers this by itself: whoever is nobody may not read it.
            status, _ = cluster.ask(
                "GET", "/v1/openapi.json", node=node, caller=Caller(address="10.1.1.1")
            )
            assert status == 403
    cluster.run(2)
    assert counts(cluster) == {1: 2, 2: 3, 3: 5}
    assert {record.principal for record in attempts(cluster)} == {""}
    cluster.assert_equal()


def test_a_flood_is_few_bytes_and_exact() -> None:
    cluster = made()
    before = sum(len(batch.encoded) for batch in cluster.batches())
    for number in range(2_000):
        name = f"topic-{number % 500}"
        attempt = Attempt("User:mallory", "token", "create_topics", name, "10.0.0.7", "C", "why")
        cluster.processes[2].run(
            lambda attempt=attempt: cluster.controllers[2].note_attempt(attempt)
        )
    cluster.run(120)
    assert counts(cluster) == {2: 2_000}
    written = sum(len(batch.encoded) for batch in cluster.batches()) - before
    assert written < 16_000
    trail = cluster.controllers[2].trail
    assert trail.reporting.written == 2_000 == sum(trail.noted.values())
    assert trail.counts.not_told_apart > 1_000


def test_a_report_that_comes_twice_or_is_lost_is_written_once() -> None:
    cluster = made()
    refused(cluster, 2)
    cluster.shared.cut(2)
    for _ in range(4):
        attempt = Attempt("", "", "login", "user:a", "10.0.0.7", "UNAUTHENTICATED", "no")
        cluster.processes[2].run(lambda a=attempt: cluster.controllers[2].note_attempt(a))
    cluster.run(15)
    assert counts(cluster) == {1: 2}
    cluster.shared.heal()
    cluster.run(15)
    assert counts(cluster) == {1: 2, 2: 4}
    (report,) = [record for record in attempts(cluster) if record.controller_id == 2]
    again = cluster.controllers[2].trail.reporting
    assert not again._under_way

    for _ in range(3):
        data = encode_report([report])
        cluster.processes[1].run(lambda d=data: cluster.controllers[1].on_contacts(2, d))
        cluster.run(1)
    assert counts(cluster) == {1: 2, 2: 4}


def test_a_new_leader_goes_on() -> None:
    cluster = made()
    refused(cluster, 2)
    cluster.lead(2)
    refused(cluster, 3)
    cluster.run(15)
    assert counts(cluster) == {1: 2, 2: 3}
    cluster.assert_equal()


def test_what_died_with_a_process_is_what_was_not_reported() -> None:
    cluster = made()
    attempt = Attempt("", "", "login", "user:a", "10.0.0.7", "UNAUTHENTICATED", "no")
    for _ in range(4):
        cluster.processes[3].run(lambda: cluster.controllers[3].note_attempt(attempt))
    cluster.run(2)
    cluster.processes[3].run(lambda: cluster.controllers[3].note_attempt(attempt))
    cluster.kill(3)
    cluster.start(3)
    cluster.run(1)
    for _ in range(2):
        cluster.processes[3].run(lambda: cluster.controllers[3].note_attempt(attempt))
    cluster.run(15)
    found = attempts(cluster)
    assert [record.count for record in found] == [4, 2]
    assert len({record.life for record in found}) == 2
    assert len(cluster.image.attempts.lives) == 2
    cluster.assert_equal()


def test_the_image_keeps_eight_lives_of_a_controller() -> None:
    cluster = made()
    attempt = Attempt("", "", "login", "", "10.0.0.7", "UNAUTHENTICATED", "no")
    for _ in range(10):
        cluster.processes[3].run(lambda: cluster.controllers[3].note_attempt(attempt))
        cluster.run(3)
        cluster.kill(3)
        cluster.start(3)
        cluster.run(1)
    assert counts(cluster) == {3: 10}
    assert len(cluster.image.attempts.lives) == 8
    cluster.assert_equal()


def test_rights_that_are_only_logged_say_what_would_be_refused() -> None:
    cluster = made("log-only")
    status, _ = cluster.ask("GET", "/v1/acls", caller=MALLORY)
    assert status == 200
    cluster.run(2)
    (record,) = attempts(cluster)
    assert record.outcome == AttemptOutcome.WOULD_BE_REFUSED
    assert record.resource == "cluster:kafka-cluster"
    assert counts(cluster) == {1: 1}


def test_joined_changes_count_one_by_one() -> None:
    cluster = made()
    change = {"method": "DELETE", "path": "/v1/topics/orders"}
    status, answer = cluster.ask(
        "POST", "/v1/changes", {"changes": [change, change]}, caller=MALLORY
    )
    assert status == 200
    assert [each["status"] for each in answer["outcomes"]] == [403, 403]
    cluster.run(2)
    assert counts(cluster) == {1: 2}


def test_accepted_requests_are_recorded_if_a_rule_says_so() -> None:
    rules = (
        AttemptRule(detail="none", outcome="accepted", operations=("list_*",)),
        AttemptRule(detail="request-response", outcome="accepted", principals=("User:root",)),
        AttemptRule(detail="none", outcome="refused", operations=("status",)),
    )
    cluster = made(attempt_rules=rules)
    for path in ("/v1/acls", "/v1/status", "/health/live", "/metrics"):
        assert cluster.ask("GET", path, caller=ROOT)[0] == 200
    assert cluster.ask("GET", "/v1/status", caller=MALLORY)[0] == 403
    cluster.run(2)
    (record,) = attempts(cluster)
    assert record.outcome == AttemptOutcome.ACCEPTED
    assert (record.principal, record.operation, record.code) == ("User:root", "status", "")
    assert (record.request, record.answer) == ("GET /v1/status", "200")
    assert cluster.controllers[1].trail.passed_over == 1


def test_the_detail_request_keeps_no_body() -> None:
    cluster = made(attempt_rules=(AttemptRule(detail="request"),))
    refused(cluster, headers={"x-logberg-client-id": "a tool"})
    cluster.run(2)
    record = next(r for r in attempts(cluster) if r.outcome == AttemptOutcome.REFUSED)
    assert (record.request, record.client_id) == ("POST /v1/topics", "a tool")
    assert len(record.body_sha256) == 64
    assert not record.answer


def test_nothing_is_written_below_the_level_that_has_the_record() -> None:
    cluster = made(initial_features={LOGBERG_VERSION: ATTEMPTS_FROM - 1})
    refused(cluster, 3)
    cluster.run(30)
    assert not attempts(cluster)
    update = {"feature": LOGBERG_VERSION, "maxVersionLevel": ATTEMPTS_FROM}
    status, answer = cluster.ask("POST", "/v1/features", {"updates": [update]}, caller=ROOT)
    assert status == 200, answer
    cluster.run(90)
    assert counts(cluster) == {1: 3}


def test_reports_wait_for_their_budget_of_bytes_and_lose_nothing() -> None:
    cluster = made(attempts_bytes_per_minute=20_000, attempts_interval_s=1.0)
    for second in range(60):
        for number in range(20):
            attempt = Attempt("", "", f"op-{number}", f"s-{second}", "10.0.0.7", "C", "why")
            cluster.processes[1].run(lambda a=attempt: cluster.controllers[1].note_attempt(a))
        cluster.run(1)
    reported = sum(
        len(batch.encoded)
        for batch in cluster.batches()
        if batch.header.provenance.operation == OPERATION
    )
    assert 0 < reported <= 2 * 20_000
    assert cluster.controllers[1].trail.writing.held_back
    noted = sum(cluster.controllers[1].trail.noted.values())
    assert noted == 1_200
    assert counts(cluster)[1] < noted


def test_a_request_of_kafka_s_protocol_that_no_route_answers() -> None:
    cluster = made()
    controller = cluster.controllers[1]
    asked = Request("", "", caller=MALLORY)
    for name, key in (("DescribeCluster", 60), ("Nonsense", 999)):
        access = KAFKA_ACCESS.get(key)
        refused = []
        cluster.processes[1].run(
            lambda name=name, access=access, refused=refused: refused.append(
                controller.access_refusal(name, access, asked, {})
            )
        )
        assert refused[0] is not None
    cluster.run(2)
    found = {record.operation: record.principal for record in attempts(cluster)}
    assert found == {"DescribeCluster": "User:mallory", "Nonsense": "User:mallory"}
    assert counts(cluster) == {1: 2}


def test_what_is_no_business_of_the_trail_is_not_in_it() -> None:
    cluster = made()
    assert cluster.ask("GET", "/v1/nowhere", caller=MALLORY)[0] == 404
    assert cluster.ask("POST", "/v1/topics", b"{", caller=ROOT)[0] == 400
    assert cluster.ask("GET", "/health/live", caller=Caller())[0] == 200
    cluster.run(15)
    assert not attempts(cluster)
    assert cluster.controllers[1].trail.reporting._timer is None


def test_a_path_becomes_the_name_of_its_route() -> None:
    cluster = made()
    for path in ("/v1/topics/x", "/v1/topics/y", "/etc/passwd", "/../.."):
        attempt = Attempt(
            "", "", "", "", "10.0.0.7", "UNAUTHENTICATED", "no", request=f"GET {path}"
        )
        cluster.processes[1].run(lambda a=attempt: cluster.controllers[1].note_attempt(a))
    cluster.run(2)
    found = {record.operation: record.count for record in attempts(cluster)}
    assert found == {"describe_topic": 2, "unknown": 2}
