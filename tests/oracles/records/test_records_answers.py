"""Our bytes of Kafka's records are those that Kafka's own serde wrote (ADR 0071)."""

from metadata.records import RECORD_CLASSES, NoOpRecord
from tests.oracles.records import TABLE
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
