"""Kafka's numbers: the whole enum as Kafka printed it, and one for each of our codes."""

from pathlib import Path

import pytest

from kafka_listener.asking.error_codes import kafka_code, throttle_ms
from kafka_listener.asking.kafka_code import KafkaCode
from metadata.errors import ErrorCode, Fault, LogbergError
from metadata.messages import error_reply

PRINTED = (Path(__file__).parent / "kafka_errors.txt").read_text()
ROWS = [line.split() for line in PRINTED.splitlines()]
"""Number, name, and whether Kafka's clients ask again, of each of Kafka 4.3.1's Errors."""
RETRIED = {name for _, name, again in ROWS if again == "true"}
RETRIED_BY_KAFKA_ONLY = {
    ErrorCode.CONTINUATION_EXPIRED: "we want a new read from the beginning, which a retry is",
    ErrorCode.ELECTION_NOT_NEEDED: "Kafka's own class says so",
    ErrorCode.FENCED_LEADER_EPOCH: "Kafka's own class says so",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "Kafka's own class says so",
    ErrorCode.STALE_EXPECTED_OFFSET: "a replacement of configs reads again",
    ErrorCode.STATE_DIVERGED: "another controller can do it",
    ErrorCode.STORAGE_ERROR: "another controller can do it",
    ErrorCode.UNKNOWN_TOPIC_ID: "Kafka's own class says so",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Kafka's own class says so",
}
RETRIED_BY_US_ONLY = {
    ErrorCode.BROKER_NOT_AVAILABLE: "Kafka's own class says so",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "Kafka's own class says so; brokers ask again",
    ErrorCode.FEATURE_UPDATE_FAILED: "Kafka's own class says so",
    ErrorCode.INELIGIBLE_REPLICA: "Kafka's own class says so; brokers ask again",
    ErrorCode.SNAPSHOT_NOT_FOUND: "Kafka's own class says so; brokers fetch again",
    ErrorCode.VOTERS_NOT_READY: "no Kafka request changes the voters here",
}


def test_the_enum_is_kafkas():
    assert [(int(number), name) for number, name, _ in ROWS] == [
        (int(code), code.name) for code in KafkaCode
    ]


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_of_ours_has_a_number(code):
    number = kafka_code(code)
    assert number is not KafkaCode.NONE
    if code.name in KafkaCode.__members__:
        assert number is KafkaCode[code.name]
    assert kafka_code(LogbergError(code)) is number
    assert kafka_code(error_reply(LogbergError(code))) is number


def test_kafkas_clients_ask_again_where_ours_do():
    """The exceptions are named, with the reason."""
    by_kafka = {code for code in ErrorCode if kafka_code(code).name in RETRIED}
    by_us = {code for code in ErrorCode if code.retriable}
    assert by_kafka - by_us == set(RETRIED_BY_KAFKA_ONLY)
    assert by_us - by_kafka == set(RETRIED_BY_US_ONLY)


def test_a_defect_of_ours_is_told_as_one():
    assert kafka_code(ErrorCode.UNKNOWN_SERVER_ERROR) is KafkaCode.UNKNOWN_SERVER_ERROR
    others = [code for code in ErrorCode if kafka_code(code) is KafkaCode.UNKNOWN_SERVER_ERROR]
    assert others == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert ErrorCode.UNKNOWN_SERVER_ERROR.fault is Fault.SERVER


def test_how_long_to_wait():
    assert throttle_ms(LogbergError(ErrorCode.THROTTLED, retry_after_ms=250)) == 250
    assert throttle_ms(LogbergError(ErrorCode.NOT_FOUND)) == 0
