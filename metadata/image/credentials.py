"""Access tokens, join tokens, and revocations of certificates (ADR 0089).

Rule: replay judges nothing. `metadata.credentials` decides what a token or a certificate is worth.
A token that has ended stays for `KEPT_MS`, so that a refusal can say why. Access tokens and
revocations are for brokers, too: their listeners close connections that a revocation concerns.
Join tokens are the controllers' alone.

What is derived (`token_order`, `join_order`, `endings`) is in no snapshot.
"""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_name_and_code, mix_text
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, itself, replays
from metadata.records import (
    AccessTokenRecord,
    CertificateRevocationRecord,
    JoinTokenRecord,
    RemoveAccessTokenRecord,
    RemoveCertificateRevocationRecord,
    RemoveJoinTokenRecord,
)
from metadata.records.credentials import NEVER

KEPT_MS: Final = 7 * 24 * 3600 * 1000
"""How long the log's state keeps a token after its end."""
RevocationKey = tuple[str, int]
"""(serial number or principal, a `RevokedBy`)."""
Ending = tuple[int, bool, str]
"""(ms since 1970 from when the state need not keep it, whether it is a join token, its id)."""


def ending_of(token: AccessTokenRecord | JoinTokenRecord) -> Ending:
    """Return from when on the state need not keep a token."""
    end = token.expires_ms
    if token.revoked_ms != NEVER:
        end = min(end, token.revoked_ms)
    return end + KEPT_MS, isinstance(token, JoinTokenRecord), token.token_id


class CredentialsImage(msgspec.Struct, frozen=True):
    """All of them. Each is its record."""

    access_tokens: BucketMap[str, AccessTokenRecord]
    join_tokens: BucketMap[str, JoinTokenRecord]
    revocations: BucketMap[RevocationKey, CertificateRevocationRecord]
    token_order: SortedKeys[str]
    """The ids of all access tokens, in order."""
    join_order: SortedKeys[str]
    """The ids of all join tokens, in order."""
    revocation_order: SortedKeys[RevocationKey]
    """The keys of all revocations, in order."""
    endings: SortedKeys[Ending]
    """From when on each token need not be kept, the earliest first."""


EMPTY_CREDENTIALS = CredentialsImage(
    BucketMap(mix_text),
    BucketMap(mix_text),
    BucketMap(mix_name_and_code),
    SortedKeys(),
    SortedKeys(),
    SortedKeys(),
    SortedKeys(),
)


class CredentialsDelta:
    """Replays the records of credentials."""

    def __init__(self, image: CredentialsImage) -> None:
        self._image = image
        self.access_tokens = Overlay(image.access_tokens)
        self.join_tokens = Overlay(image.join_tokens)
        self.revocations = Overlay(image.revocations)
        self._endings: dict[Ending, bool | None] = {}

    def apply_in_steps(self) -> Generator[None, None, CredentialsImage]:
        image = self._image
        return CredentialsImage(
            (yield from self.access_tokens.apply_in_steps()),
            (yield from self.join_tokens.apply_in_steps()),
            (yield from self.revocations.apply_in_steps()),
            (yield from image.token_order.changing(self.access_tokens.changed)),
            (yield from image.join_order.changing(self.join_tokens.changed)),
            (yield from image.revocation_order.changing(self.revocations.changed)),
            (yield from image.endings.changing(self._endings)),
        )

    @replays(AccessTokenRecord)
    def set_access_token(self, record: AccessTokenRecord, offset: int) -> None:
        """Make, change or revoke an access token."""
        self._forget_ending(self.access_tokens.get(record.token_id))
        self.access_tokens.set(record.token_id, record)
        self._endings[ending_of(record)] = True

    @replays(RemoveAccessTokenRecord)
    def remove_access_token(self, record: RemoveAccessTokenRecord, offset: int) -> None:
        known = self.access_tokens.get(record.token_id)
        if known is None:
            raise ReplayError(offset, f"there is no access token {record.token_id!r}")
        self._forget_ending(known)
        self.access_tokens.remove(record.token_id)

    @replays(JoinTokenRecord)
    def set_join_token(self, record: JoinTokenRecord, offset: int) -> None:
        """Make, revoke or use up a join token."""
        self._forget_ending(self.join_tokens.get(record.token_id))
        self.join_tokens.set(record.token_id, record)
        self._endings[ending_of(record)] = True

    @replays(RemoveJoinTokenRecord)
    def remove_join_token(self, record: RemoveJoinTokenRecord, offset: int) -> None:
        known = self.join_tokens.get(record.token_id)
        if known is None:
            raise ReplayError(offset, f"there is no join token {record.token_id!r}")
        self._forget_ending(known)
        self.join_tokens.remove(record.token_id)

    @replays(CertificateRevocationRecord)
    def revoke(self, record: CertificateRevocationRecord, offset: int) -> None:
        self.revocations.set((record.value, record.kind), record)

    @replays(RemoveCertificateRevocationRecord)
    def reinstate(self, record: RemoveCertificateRevocationRecord, offset: int) -> None:
        key = (record.value, record.kind)
        if key not in self.revocations:
            raise ReplayError(offset, f"no revocation names {record.value!r}")
        self.revocations.remove(key)

    def _forget_ending(self, token: AccessTokenRecord | JoinTokenRecord | None) -> None:
        if token is not None:
            self._endings[ending_of(token)] = None


TABLES: Final = (
    ImageTable(
        "access_tokens", "credentials", "access_tokens", itself, "access-token", ("token_id",)
    ),
    ImageTable(
        "join_tokens",
        "credentials",
        "join_tokens",
        itself,
        "join-token",
        ("token_id",),
        controllers_only=True,
    ),
    ImageTable(
        "revocations", "credentials", "revocations", itself, "certificate", ("value", "kind")
    ),
)
