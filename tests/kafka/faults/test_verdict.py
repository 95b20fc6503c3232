"""The judge of a fault run finds what is lost, doubled, fenced and late. It needs no Kafka."""

from dataclasses import replace

import pytest

from tests.kafka.broker_logs import MetadataEntry
from tests.kafka.faults.load import TOPIC, parse
from tests.kafka.faults.verdict import judge, waits

LINES = [
    "a 0 1000 1010 3 7",
    "a 1 1005 1015 4 2",
    "c 0 3 7 1020",
    "c 1 4 2 1030",
    "m 100000000 1000 1040",
    "m 100000001 1200 2000",
    "some words of Java",
    "a half of a lin",
    "e",
]


def config(value: int, offset: int = 50) -> MetadataEntry:
    fields = {
        "ResourceType": 2,
        "ResourceName": TOPIC,
        "Name": "retention.ms",
        "Value": str(value),
    }
    return MetadataEntry(offset, 1000, "ConfigRecord", fields)


def registered(timestamp_ms: int) -> MetadataEntry:
    return MetadataEntry(3, timestamp_ms, "RegisterBrokerRecord", {"BrokerId": 11})


def changed(fenced: int) -> MetadataEntry:
    return MetadataEntry(60, 1500, "BrokerRegistrationChangeRecord", {"Fenced": fenced})


WHOLE = [registered(500), config(100_000_000), config(100_000_001)]


def test_a_run_in_which_nothing_went_wrong() -> None:
    told = parse(LINES)
    assert told.ended
    found = judge(told, WHOLE, 900, strikes=1, elections=2)
    assert found.problems() == []
    assert (found.messages.count, found.changes.count) == (2, 2)
    assert found.changes.longest_gap == 960


@pytest.mark.parametrize(
    ("lines", "log", "said"),
    [
        ([line for line in LINES if line != "c 1 4 2 1030"], WHOLE, "1 acknowledged messages"),
        ([*LINES[:3], "c 0 4 2 1030", *LINES[4:]], WHOLE, "1 acknowledged messages"),
        ([*LINES, "c 0 3 8 1020"], WHOLE, "1 messages stand in the log twice"),
        (LINES, WHOLE[:-1], "1 acknowledged changes"),
        ([*LINES, "f 2 1 2 TimeoutException"], WHOLE, "1 messages failed"),
        (LINES, [*WHOLE, changed(1)], "1 times a broker was fenced"),
        (LINES, [*WHOLE, registered(1500)], "1 brokers were restarted"),
    ],
)
def test_what_must_not_be_is_found(lines, log, said) -> None:
    problems = judge(parse(lines), log, 900, strikes=1, elections=2).problems()
    assert len(problems) >= 1
    assert any(problem.startswith(said) for problem in problems), problems


def test_a_broker_that_is_unfenced_is_not_fenced() -> None:
    found = judge(parse(LINES), [*WHOLE, changed(-1), changed(0)], 900, strikes=1, elections=2)
    assert found.fenced == 0


def test_waits_are_counted_from_when_a_message_was_due() -> None:
    found = waits([(0, 5), (100, 105), (200, 2200), (300, 2201)])
    assert (found.median, found.longest, found.longest_gap) == (1901, 2000, 2095)
    assert waits([]).count == 0
    assert replace(parse([]), ended=True).acked == []
