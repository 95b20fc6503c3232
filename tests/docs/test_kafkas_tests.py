"""docs/kafka/kafkas-tests.md says what the kept runs did, and JUnit's reports are read rightly."""

from pathlib import Path

from tests.kafka.kafkas_tests.outcomes import keep, read_outcomes
from tests.kafka.kafkas_tests.page import PAGE, page_of
from tests.kafka.kafkas_tests.reports import CaseEnd, read_reports
from tests.kafka.kafkas_tests.running import ClassRun, Side

REPORT = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="JUnit Jupiter" tests="5">
<testcase name="testA(ClusterInstance)[1]" classname="x.ATest" time="1,002.5">
<system-out><![CDATA[
unique-id: [engine:junit-jupiter]/[class:x.ATest]
display-name: testA [1] Type=Raft-Isolated, MetadataVersion=4.3-IV0
]]></system-out>
</testcase>
<testcase name="testA(ClusterInstance)[2]" classname="x.ATest" time="0.1">
<failure type="java.lang.RuntimeException"><![CDATA[java.lang.RuntimeException: Failed to start
Caused by: logberg.kafkatests.NotOnLogbergException: combined mode
]]></failure>
<system-out><![CDATA[display-name: testA [2] Type=Raft-Combined
]]></system-out>
</testcase>
<testcase name="testB()" classname="x.ATest" time="0.1">
<failure type="x"><![CDATA[java.lang.NoSuchMethodError: 'x kafka.server.ControllerServer.quotas()'
]]></failure>
</testcase>
<testcase name="testC()" classname="x.ATest" time="0.1">
<failure type="x"><![CDATA[java.lang.NoSuchMethodError: 'int kafka.server.BrokerServer.other()'
]]></failure>
</testcase>
<testcase name="testD()" classname="x.ATest" time="0"><skipped><![CDATA[public void is @Disabled
]]></skipped></testcase>
</testsuite>
"""


def run(tmp_path: Path) -> ClassRun:
    (tmp_path / "TEST-junit-jupiter.xml").write_text(REPORT)
    return ClassRun(tuple(read_reports(tmp_path)), ended=True, seconds=12.3, controllers=2)


def test_only_what_the_stand_in_refuses_counts_as_not_run(tmp_path: Path) -> None:
    tests = run(tmp_path).tests
    assert [test.end for test in tests] == [
        CaseEnd.PASSED,
        CaseEnd.NOT_RUN,
        CaseEnd.NOT_RUN,
        CaseEnd.FAILED,
        CaseEnd.SKIPPED,
    ]
    assert tests[0].name == "testA [1] Type=Raft-Isolated, MetadataVersion=4.3-IV0"
    assert tests[0].seconds == 1002.5
    assert tests[1].why == "combined mode"
    assert tests[2].why == "a controller's memory: ControllerServer.quotas"


def test_a_failure_that_kraft_has_not_is_a_defect_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.json"
    keep("x.ATest", Side.LOGBERG, run(tmp_path), path)
    keep("x.ATest", Side.KRAFT, ClassRun((), ended=True, seconds=9.0, controllers=0), path)
    text = page_of(read_outcomes(path))
    assert "| **1** |" in text
    assert "`ATest.testC`: **a defect**" in text
    assert "| combined mode | 1 | `ATest` |" in text


def test_a_class_that_did_not_end_is_no_pass(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.json"
    keep("x.ATest", Side.LOGBERG, ClassRun((), ended=False, seconds=9.0, controllers=0), path)
    assert "did not end" in page_of(read_outcomes(path))


def test_the_page_is_made_from_the_kept_outcomes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_of(read_outcomes()), (
        "run: python -m tests.kafka.kafkas_tests --write"
    )
