"""Our decisions on actions against the table of Kafka's answers."""

from collections import Counter

from tests.oracles.acls import TABLE
from tests.oracles.acls.cases import ALLOWED, DENIED, answer

ROWS = [line.split(" <- ") for line in TABLE.read_text().splitlines()]


def test_our_rules_decide_as_kafka_does():
    wrong = [f"{said} <- {case}" for said, case in ROWS if answer(case) != said]
    assert wrong[:5] == []


def test_the_table_has_enough_of_both():
    counts = Counter(said for said, _ in ROWS)
    assert {*counts} == {ALLOWED, DENIED}
    assert min(counts.values()) > 300
