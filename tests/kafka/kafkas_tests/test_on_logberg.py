"""Kafka's own test classes of the first trial pass on our controllers."""

from pathlib import Path

import pytest

from tests.kafka.kafkas_tests.reports import CaseEnd
from tests.kafka.kafkas_tests.running import ClassRun, Side, run_class

_CLIENTS = "org.apache.kafka.clients"


def _ends(run: ClassRun, end: CaseEnd) -> list[str]:
    return [f"{test.name}: {test.why}" for test in run.tests if test.end is end]


def test_delete_topic_test(tmp_path: Path) -> None:
    """The class that CI runs: 11 methods, no combined mode."""
    run = run_class(f"{_CLIENTS}.admin.DeleteTopicTest", Side.LOGBERG, tmp_path, limit_s=600)
    assert not _ends(run, CaseEnd.FAILED)
    assert len(_ends(run, CaseEnd.PASSED)) == len(run.tests) == 11
    assert run.controllers == 11


@pytest.mark.parametrize(
    ("name", "passed", "not_run"),
    [
        # One of its tests begins at metadata.version 7, which our logs don't know.
        ("producer.ProducerIntegrationTest", 9, 1),
        ("consumer.PlaintextConsumerAssignTest", 18, 0),
        ("admin.AdminFenceProducersTest", 3, 3),
    ],
)
def test_a_class_of_the_trial(tmp_path: Path, name: str, passed: int, not_run: int) -> None:
    run = run_class(f"{_CLIENTS}.{name}", Side.LOGBERG, tmp_path)
    assert not _ends(run, CaseEnd.FAILED)
    assert len(_ends(run, CaseEnd.PASSED)) == passed
    assert len(_ends(run, CaseEnd.NOT_RUN)) == not_run
    assert run.controllers >= passed
