"""SCRAM credentials by user and mechanism (KIP-554).

Rule: replay takes keys as they are, sealed (`metadata.sealing`) or in clear; it opens nothing.
`order` is derived from `credentials`, and is in no snapshot.
"""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_name_and_code
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, itself, replays
from metadata.records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

CredentialKey = tuple[str, int]
"""(user, a `ScramMechanism`)."""


class ScramImage(msgspec.Struct, frozen=True):
    """All SCRAM credentials. A credential is its record."""

    credentials: BucketMap[CredentialKey, UserScramCredentialRecord]
    order: SortedKeys[CredentialKey]
    """The keys of all credentials, in order."""


EMPTY_SCRAM = ScramImage(BucketMap(mix_name_and_code), SortedKeys())


class ScramDelta:
    """Replays the records of SCRAM credentials."""

    def __init__(self, image: ScramImage) -> None:
        self._order = image.order
        self.credentials = Overlay(image.credentials)

    def apply_in_steps(self) -> Generator[None, None, ScramImage]:
        return ScramImage(
            (yield from self.credentials.apply_in_steps()),
            (yield from self._order.changing(self.credentials.changed)),
        )

    @replays(UserScramCredentialRecord)
    def set_credential(self, record: UserScramCredentialRecord, offset: int) -> None:
        self.credentials.set((record.name, record.mechanism), record)

    @replays(RemoveUserScramCredentialRecord)
    def remove_credential(self, record: RemoveUserScramCredentialRecord, offset: int) -> None:
        key = (record.name, record.mechanism)
        if key not in self.credentials:
            raise ReplayError(offset, f"user {key[0]!r} has no credential of mechanism {key[1]}")
        self.credentials.remove(key)


TABLES: Final = (
    ImageTable("scram", "scram", "credentials", itself, "user", ("name", "mechanism")),
)
