"""Drawing, comparing and reducing. A stand-in for Java answers by our rules, with one mistake."""

from collections.abc import Sequence
from random import Random

import msgspec

from metadata.records import PartitionChangeRecord
from tests.oracles.partition_changes import ours
from tests.oracles.partition_changes.comparing import Ask, Tally, compare, judge_all
from tests.oracles.partition_changes.drawing import draw_cases
from tests.oracles.partition_changes.lines import (
    Case,
    read_case,
    show_case,
    show_partition,
    show_record,
)
from tests.oracles.partition_changes.reducing import reduced


def asking(*, mistaken: bool = False) -> Ask:
    """Answer by our rules; if mistaken, forget the ISR whenever broker 3 is not in it."""

    def record_of(case: Case) -> PartitionChangeRecord | None:
        record = ours.decide(case)
        if mistaken and record is not None and record.isr is not None and 3 not in record.isr:
            return msgspec.structs.replace(record, isr=None, leader_recovery_state=1)
        return record

    def ask(lines: Sequence[str]) -> list[str]:
        cases = [read_case(line) for line in lines]
        found = ours.replayed(cases, [record_of(case) for case in cases])
        return [f"{show_record(one.record)} | {show_partition(one.after)}" for one in found]

    return ask


def test_equal_answers_are_equal():
    tally = Tally()
    for judged in compare(asking(), Random(3), 400, batch=100):
        tally.add(judged)
    assert (tally.compared, tally.wrong, tally.first_wrong) == (400, 0, [])
    assert 200 < tally.changed < 400


def test_a_mistake_is_found_and_reduced():
    ask = asking(mistaken=True)
    tally = Tally()
    for judged in compare(ask, Random(3), 400, batch=100):
        tally.add(judged)
    assert tally.wrong > 20
    for judged in tally.first_wrong[:5]:
        small = reduced(ask, judged.case)
        assert small.wrong
        assert len(show_case(small.case)) <= len(show_case(judged.case))
        assert len(small.case.partition.replicas) <= 2, show_case(small.case)


def test_an_error_of_kafkas_is_wrong():
    case = read_case("replicas=1 dirs=a isr=1 leader=1 | alive=1")
    [judged] = judge_all(lambda lines: ["error=NullPointerException |"] * len(lines), [case])
    assert judged.wrong
    assert judged.kafka.error == "NullPointerException"


def test_the_partition_behind_the_record_is_compared():
    case = read_case("replicas=1 dirs=a isr=1 leader=1 | alive=1")
    answer = "none | replicas=1 dirs=a isr=1 leader=1 epochs=0,{}"
    for epoch, differing in (("0", ()), ("1", ("after",))):
        [judged] = judge_all(lambda lines, at=epoch: [answer.format(at)] * len(lines), [case])
        assert judged.differing == differing


def test_the_same_dice_draw_the_same_cases():
    one, other = (list(map(show_case, draw_cases(Random(7), 50))) for _ in range(2))
    assert one == other
    assert len({*one}) > 45
    assert {len(read_case(line).partition.replicas) for line in one} == {1, 2, 3, 4, 5, 6}
