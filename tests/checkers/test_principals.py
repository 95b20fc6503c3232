"""Each false principal is named; a log in which all is true has none."""

import msgspec
import pytest

from ledger.batch import ACTED_AS, BatchHeader, Provenance, seal
from metadata.codec import encode_records
from metadata.records import BeginEpochRecord, NoOpRecord, RegisterBrokerRecord
from metadata.uuids import uuid_text
from tests.checkers.principals import false_principals

BEGIN = BeginEpochRecord(2, (), ())
BROKER = RegisterBrokerRecord(7, b"i" * 16, 1, (), (), None)
ID = bytes(16)
OWN = Provenance(principal="Controller:2", auth_method="internal", operation="BeginEpoch")
REGISTERS = Provenance(principal="Broker:7", auth_method="token", operation="RegisterBroker")
ASKS = Provenance("User:admin", "token", request_id=ID, operation="CreateTopics")
CARRIERS = {uuid_text(ID): "User:admin", "another": "Broker:7"}


def log(*said, role=""):
    for provenance in said:
        record = {"BeginEpoch": BEGIN, "RegisterBroker": BROKER}.get(
            provenance.operation, NoOpRecord()
        )
        extensions = {ACTED_AS: role.encode()} if role else {}
        header = BatchHeader(0, 1, 1, 1, provenance, bytes(32), extensions)
        yield seal(header, encode_records([record]))


def test_a_true_log_has_none():
    assert false_principals(log(OWN, REGISTERS, ASKS), CARRIERS) == []


@pytest.mark.parametrize(
    ("said", "principal"),
    [
        (OWN, "Controller:1"),
        (OWN, "User:admin"),
        (REGISTERS, "User:admin"),
        (REGISTERS, "Broker:8"),
        (REGISTERS, "Controller:2"),
        (ASKS, "Broker:7"),
        (ASKS, "User:eve"),
    ],
)
def test_a_false_principal_is_found(said, principal):
    false = msgspec.structs.replace(said, principal=principal)
    (sentence,) = false_principals(log(OWN, false) if said is not OWN else log(false), CARRIERS)
    assert principal in sentence


def test_nobody_acts_as_a_broker_where_all_are_authenticated():
    assert false_principals(log(REGISTERS, role="Broker:7"), CARRIERS)
