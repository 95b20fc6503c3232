"""Our rules against the table of Kafka's answers. `make oracle` asks Kafka itself."""

from collections import Counter

from controller.managers.partition_change import ElectionMode
from tests.oracles.partition_changes import ours, table
from tests.oracles.partition_changes.comparing import judge
from tests.oracles.partition_changes.differences import DIFFERENCES
from tests.oracles.partition_changes.lines import (
    read_answer,
    read_case,
    show_case,
    show_record,
)

ROWS = table.read()
MOST_BYTES = 300_000
LEAST_ROWS = 2_000


def test_our_rules_answer_as_kafka_does_but_for_documented_differences():
    answers = ours.answers([case for case, _ in ROWS])
    judged = [judge(*row, our) for row, our in zip(ROWS, answers, strict=True)]
    wrong = [
        f"{show_case(one.case)} | {show_record(one.kafka.record)} | ours: "
        f"{show_record(one.ours.record)}"
        for one in judged
        if one.wrong
    ]
    assert wrong[:5] == []
    met = Counter(one.name for row in judged for one in row.excuses)
    assert {*met} == {one.name for one in DIFFERENCES}
    assert sum(met.values()) < len(ROWS) / 3


def test_our_targets_of_reassignments_are_kafkas():
    rows = table.read(table.TARGETS)
    kinds = Counter(case.change.asked.partition("=")[0] for case, _ in rows)
    assert {*kinds} == {"reassign", "cancel"}
    assert min(kinds.values()) >= 30
    answers = ours.answers([case for case, _ in rows])
    judged = [judge(*row, our) for row, our in zip(rows, answers, strict=True)]
    assert [show_case(one.case) for one in judged if one.wrong][:5] == []


def test_the_table_has_every_mode_with_and_without_elr():
    met = {(case.change.rules.mode, case.change.rules.elr) for case, _ in ROWS}
    assert met == {(mode, elr) for mode in ElectionMode for elr in (False, True)}


def test_the_table_is_small_sorted_and_has_no_row_twice():
    lines = table.lines_of()
    assert lines == sorted({*lines})
    assert len(lines) >= LEAST_ROWS
    assert table.TABLE.stat().st_size <= MOST_BYTES


def test_a_line_is_read_as_it_was_shown():
    for line in table.lines_of():
        case, _, record = line.rpartition(" | ")
        assert show_case(read_case(case)) == case
        assert show_record(read_answer(record).record) == record
