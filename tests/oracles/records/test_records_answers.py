"""Our bytes of Kafka's records are those that Kafka's own serde wrote (ADR 0071)."""

import pytest

from metadata.records import RECORD_CLASSES, NoOpRecord
from tests.kafka_records import round_trip
from tests.oracles.records import TABLE, drawn
from tests.oracles.records.cases import cases

ANSWERS = dict(line.split() for line in TABLE.read_text().splitlines())


def test_every_golden_record_in_every_version_has_kafka_s_bytes() -> None:
    assert {case.name: case.bytes.hex() for case in cases()} == ANSWERS


def test_every_record_that_kafka_has_is_asked_in_every_version() -> None:
    asked = {(type(case.record), case.version) for case in cases()}
    kinds = {cls for cls in RECORD_CLASSES if cls.TYPE_ID < 1000}
    # ZkMigrationStateRecord is not in Kafka 4.
    assert {kind.__name__ for kind in kinds - {kind for kind, _ in asked}} == {
        "ZkMigrationStateRecord"
    }
    assert (NoOpRecord, 0) in asked
    assert {version for kind, version in asked if kind.__name__ == "RegisterBrokerRecord"} == {
        0,
        1,
        2,
        3,
        4,
    }


DRAWN = dict(line.split() for line in drawn.TABLE.read_text().splitlines())


@pytest.mark.parametrize("known", drawn.our_types(), ids=lambda known: known.name)
def test_what_kafka_drew_and_wrote_comes_back_from_our_records(known: drawn.KnownType) -> None:
    """Kafka's bytes, our record, our bytes, our record, Kafka's bytes."""
    for one in drawn.asked([known]):
        value = bytes.fromhex(DRAWN[one.key])
        back = round_trip(value)
        assert (back.name, back.version) == (one.name, one.version)
        assert back.data == value, one.key


def test_the_table_has_what_is_asked_and_nothing_else() -> None:
    assert set(DRAWN) == {one.key for one in drawn.asked(drawn.our_types())}
    assert len(set(DRAWN.values())) > len(DRAWN) // 2, "the draws differ"
