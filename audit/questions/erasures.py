"""What an erasure of a subject can't reach: values in the log that have no key of their own.

Rule: only what the records say counts. A value that is sealed under its subject's key can be
erased. One that was written before subjects had keys stays: sealed under the cluster key, or in
clear.
"""

from collections.abc import Iterable

import msgspec

from ledger.batch import Batch
from metadata.codec import decode_records
from metadata.records import UserScramCredentialRecord
from metadata.sealed_places import user_subject
from metadata.sealing import key_id_of, number_of_block


class SubjectValues(msgspec.Struct):
    """The secrets of a subject that a log has, by what protects them."""

    own_key: int = 0
    """Sealed under the subject's key."""
    cluster_key: int = 0
    """Sealed under the cluster key."""
    in_clear: int = 0
    batches_out_of_reach: int = 0
    """Batches with secrets that have no key of their own."""
    last_out_of_reach: int = -1
    """The end of the last of these batches; -1: there is none."""


def values_of(subject: str, batches: Iterable[Batch]) -> SubjectValues:
    """Count the secrets of a subject such as `user:alice`. Raises RecordDecodeError."""
    found = SubjectValues()
    for batch in batches:
        before = found.cluster_key + found.in_clear
        for record in decode_records(batch.records):
            if isinstance(record, UserScramCredentialRecord):
                _count(found, subject, record)
        if found.cluster_key + found.in_clear > before:
            found.batches_out_of_reach += 1
            found.last_out_of_reach = batch.header.end_offset
    return found


def _count(found: SubjectValues, subject: str, record: UserScramCredentialRecord) -> None:
    if user_subject(record.name) != subject:
        return
    for block in (record.stored_key, record.server_key):
        if number_of_block(block) is not None:
            found.own_key += 1
        elif key_id_of(block) is not None:
            found.cluster_key += 1
        else:
            found.in_clear += 1
