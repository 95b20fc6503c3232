"""What an erasure can't reach is counted from the log alone."""

import msgspec

from audit.questions.erasures import SubjectValues, values_of
from ledger.batch import BatchHeader, Provenance, parse, seal
from metadata.codec import encode_records
from metadata.records import (
    AttemptsRecord,
    NoOpRecord,
    PseudonymRecord,
    Record,
    SubjectErasedRecord,
    UserScramCredentialRecord,
)
from metadata.sealed_addresses import address_place
from metadata.sealed_texts import text_of_block
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys

KEY = ClusterKey(bytes(32))
KEY.subjects.keys = SubjectKeys.of_root(bytes(32))
OWN = KEY.seal_for(KEY.number_of("user:alice"), "p", bytes(32), bytes(16)).block
CLUSTERS = KEY.seal("p", bytes(32), bytes(16)).block
CLEAR = bytes(32)


def credential(block: bytes, name: str = "alice") -> Record:
    return UserScramCredentialRecord(name, 1, b"salt", block, block, 4096)


def batches(*contents: list[Record], address: str = "", who: str = "User:a") -> list:
    made, offset = [], 0
    for records in contents:
        provenance = Provenance(principal=who, operation="Test", client_address=address)
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


def test_the_name_behind_a_pseudonym_is_a_value_of_its_own() -> None:
    log = batches([PseudonymRecord("p-aaaaaaaaaaaaa", OWN)])
    assert values_of("user:p-aaaaaaaaaaaaa", log) == SubjectValues(own_key=1)
    assert values_of("user:alice", log) == SubjectValues()


def sealed(subject_number: bytes, who: str, address: str) -> str:
    place, value = address_place(who), address.encode()
    return text_of_block(KEY.seal_for(subject_number, place, value, b"day").block)


def attempt(who: str, address: str) -> Record:
    life = bytes(16)
    return AttemptsRecord(
        1, life, 1, 1, 1, who, "", "", "login", "", address, "", "", 0, 0, 1, 1, "", "", "", ""
    )


ALICE = KEY.number_of("user:alice")
FIRST = KEY.number_of_address("192.0.2.7", 0)
SECOND = KEY.number_of_address("192.0.2.7", 1)
OTHER = KEY.number_of_address("192.0.2.8", 0)


def test_addresses_of_a_user_count_by_what_protects_them() -> None:
    text = sealed(ALICE, "User:alice", "10.0.0.1")
    log = [
        *batches([NoOpRecord()], address="10.0.0.1", who="User:alice"),
        *batches([NoOpRecord()], address=text, who="User:alice"),
        *batches([NoOpRecord()], address="10.0.0.1", who="User:bob"),
        *batches([attempt("User:alice", "10.0.0.2"), attempt("User:alice", text)]),
    ]
    found = values_of("user:alice", log, [ALICE])
    assert (found.addresses, found.batches_in_clear, found.last_in_clear) == (2, 2, 2)
    assert values_of("user:bob", log).batches_in_clear == 1
    assert values_of("user:alice", log).addresses == 0, "they are erased already"


def test_who_asks_for_a_user_is_that_user() -> None:
    said = Provenance("Broker:1", "certificate", "User:alice", "10.0.0.1")
    [batch] = batches([NoOpRecord()])
    batch = msgspec.structs.replace(
        batch, header=msgspec.structs.replace(batch.header, provenance=said)
    )
    assert values_of("user:alice", [batch]).batches_in_clear == 1


def test_older_addresses_of_nobody_are_candidates_until_they_are_erased() -> None:
    first, other = sealed(FIRST, "", "192.0.2.7"), sealed(OTHER, "", "192.0.2.8")
    second = sealed(SECOND, "", "192.0.2.7")
    erased = SubjectErasedRecord("from:sealed-" + OTHER.hex(), (OTHER,))
    log = batches(
        [attempt("", first), attempt("*", other), attempt("", "192.0.2.7")],
        [erased],
        [attempt("", second), attempt("User:alice", sealed(ALICE, "User:alice", "192.0.2.7"))],
    )
    found = values_of("from:192.0.2.7", log, [SECOND])
    assert (found.addresses, found.batches_in_clear) == (1, 1)
    assert found.older == {FIRST: first}
    assert values_of("from:192.0.2.8", log, []).batches_in_clear == 0
