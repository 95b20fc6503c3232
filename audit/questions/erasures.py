"""What an erasure of a subject can't reach: values in the log that have no key of their own.

Rule: only what the records say counts. A value that is sealed under its subject's key can be
erased. One that was written before subjects had keys stays: sealed under the cluster key, or in
clear. Addresses stay in clear where the leader's settings do not seal them.
"""

from collections.abc import Collection, Iterable

import msgspec

from ledger.batch import Batch
from metadata.codec import decode_records
from metadata.records import (
    AttemptsRecord,
    PseudonymRecord,
    Record,
    SubjectErasedRecord,
    UserScramCredentialRecord,
)
from metadata.records.erasure import SEALED_FROM
from metadata.sealed_addresses import is_nobody, is_sealed, subject_of_address
from metadata.sealed_blocks import key_id_of, number_of_block
from metadata.sealed_places import user_subject
from metadata.sealed_texts import number_of_text


class SubjectValues(msgspec.Struct):
    """The values of a subject that a log has, by what protects them."""

    own_key: int = 0
    """Secrets, and a name, that are sealed under the subject's key."""
    cluster_key: int = 0
    """Secrets that are sealed under the cluster key."""
    in_clear: int = 0
    """Secrets in clear."""
    batches_out_of_reach: int = 0
    """Batches with secrets that have no key of their own."""
    last_out_of_reach: int = -1
    """The end of the last of these batches; -1: there is none."""
    addresses: int = 0
    """Addresses that are sealed under a key that is destroyed with the subject's."""
    batches_in_clear: int = 0
    """Batches with addresses in clear, in the head or in a record of attempts."""
    last_in_clear: int = -1
    """The end of the last of these batches; -1: there is none."""
    older: dict[bytes, str] = {}
    """Sealed addresses of nobody from before an address was erased, by number: only who has the
    keys knows which of them are the subject's."""


def values_of(
    subject: str, batches: Iterable[Batch], numbers: Collection[bytes] = ()
) -> SubjectValues:
    """Count the values of a subject such as `user:alice`. Raises RecordDecodeError.

    `numbers`: those whose keys its erasure destroys.
    """
    found = _Counting(subject, frozenset(numbers))
    for batch in batches:
        found.take(batch)
    return found.values


class _Counting:
    def __init__(self, subject: str, numbers: frozenset[bytes]) -> None:
        self.values = SubjectValues(older={})
        self._subject = subject
        self._numbers = numbers
        self._of_nobody: dict[bytes, str] = {}
        """Sealed addresses of nobody since an address was erased, by number."""

    def take(self, batch: Batch) -> None:
        values, said, end = self.values, batch.header.provenance, batch.header.end_offset
        before = values.cluster_key + values.in_clear
        clear = self._address(said.on_behalf_of or said.principal, said.client_address)
        for record in decode_records(batch.records):
            clear |= self._record(record)
        if values.cluster_key + values.in_clear > before:
            values.batches_out_of_reach += 1
            values.last_out_of_reach = end
        if clear:
            values.batches_in_clear += 1
            values.last_in_clear = end

    def _record(self, record: Record) -> bool:
        """Count a record; return whether it has an address of the subject in clear."""
        if isinstance(record, PseudonymRecord):
            self.values.own_key += user_subject(record.pseudonym) == self._subject
        elif isinstance(record, UserScramCredentialRecord):
            if user_subject(record.name) == self._subject:
                self._secrets(record)
        elif isinstance(record, AttemptsRecord):
            return self._address(record.principal, record.address)
        elif isinstance(record, SubjectErasedRecord):
            if record.subject.startswith(SEALED_FROM):
                self.values.older.update(self._of_nobody)
                self._of_nobody.clear()
            for number in record.numbers:
                self.values.older.pop(number, None)
        return False

    def _secrets(self, record: UserScramCredentialRecord) -> None:
        for block in (record.stored_key, record.server_key):
            if number_of_block(block) is not None:
                self.values.own_key += 1
            elif key_id_of(block) is not None:
                self.values.cluster_key += 1
            else:
                self.values.in_clear += 1

    def _address(self, who: str, address: str) -> bool:
        """Count an address; return whether it is the subject's, in clear."""
        if not is_sealed(address):
            return subject_of_address(who, address) == self._subject
        number = number_of_text(address)
        if number is None:
            return False
        if number in self._numbers:
            self.values.addresses += 1
        elif is_nobody(who):
            self._of_nobody.setdefault(number, address)
        return False
