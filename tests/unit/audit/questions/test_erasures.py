"""What an erasure can't reach is counted from the log alone."""

from audit.questions.erasures import SubjectValues, values_of
from ledger.batch import BatchHeader, Provenance, parse, seal
from metadata.codec import encode_records
from metadata.records import NoOpRecord, Record, UserScramCredentialRecord
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys

KEY = ClusterKey(bytes(32))
KEY.subjects.keys = SubjectKeys.of_root(bytes(32))
OWN = KEY.seal_for(KEY.number_of("user:alice"), "p", bytes(32), bytes(16)).block
CLUSTERS = KEY.seal("p", bytes(32), bytes(16)).block
CLEAR = bytes(32)


def credential(block: bytes, name: str = "alice") -> Record:
    return UserScramCredentialRecord(name, 1, b"salt", block, block, 4096)


def batches(*contents: list[Record]) -> list:
    made, offset = [], 0
    for records in contents:
        provenance = Provenance(principal="User:a", operation="Test")
        header = BatchHeader(offset, len(records), 1, 0, provenance, bytes(32))
        made.append(parse(seal(header, encode_records(records)).encoded))
        offset += len(records)
    return made


def test_only_values_without_a_key_of_their_own_are_out_of_reach() -> None:
    log = batches(
        [credential(CLEAR), NoOpRecord()],
        [credential(CLUSTERS), credential(CLUSTERS, "bob")],
        [NoOpRecord()],
        [credential(OWN)],
    )
    assert values_of("user:alice", log) == SubjectValues(2, 2, 2, 2, 4)
    assert values_of("user:bob", log) == SubjectValues(0, 2, 0, 1, 4)
    assert values_of("user:nobody", log) == SubjectValues()
