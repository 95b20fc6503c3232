"""Records of credentials: access tokens, join tokens, and revocations of certificates. Ours.

Rule: no record holds a secret. Of a token the log has the SHA-256, and the token is 256 random
bits, so nobody can guess it from its hash. A record holds the whole state of its thing, so a
change writes it again.
"""

from enum import IntEnum
from typing import ClassVar

from metadata.features import CREDENTIALS_FROM, LOGBERG_VERSION
from metadata.records.declaring import Columns, KnownNames, Need, Privileged, user_words
from metadata.records.record import Codes, Record
from metadata.types import BrokerId, Int8, Int64

_NEEDS = (Need(LOGBERG_VERSION, CREDENTIALS_FROM),)
NEVER = -1
"""In place of a time: it has not happened."""


class JoinRole(IntEnum):
    """Codes of `JoinTokenRecord.role`: what joins with the token."""

    BROKER = 1
    CONTROLLER = 2


class RevokedBy(IntEnum):
    """Codes of `CertificateRevocationRecord.kind`: what names the certificates."""

    SERIAL = 1
    """The serial number, in upper-case hexadecimal digits."""
    PRINCIPAL = 2
    """The principal, such as User:alice."""


class AccessTokenRecord(Record, frozen=True, tag=101700):
    """Makes, changes or revokes the bearer token of a person or a service. Ours; times in ms."""

    TYPE_ID: ClassVar[int] = 1017
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("token")
    COLUMNS: ClassVar[Columns] = {"name": "token_id"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("access-token", "user")

    token_id: str
    """The first 16 hexadecimal digits of `sha256`."""
    principal: str
    """Who calls with it."""
    name: str
    """What it is for, for people."""
    sha256: bytes
    made_by: str
    created_ms: Int64
    expires_ms: Int64
    revoked_ms: Int64
    """-1: it is not revoked."""
    replaces: str
    """The token that this one was made to replace; empty: none."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"access-token:{self.token_id}", *user_words(self.principal))


class RemoveAccessTokenRecord(Record, frozen=True, tag=117100):
    """Forgets an access token that ended some time ago. Ours."""

    TYPE_ID: ClassVar[int] = 1171
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    COLUMNS: ClassVar[Columns] = {"name": "token_id"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("access-token",)

    token_id: str

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"access-token:{self.token_id}",)


class JoinTokenRecord(Record, frozen=True, tag=117200):
    """Makes, revokes or uses up the token with which one node gets its certificate. Ours."""

    TYPE_ID: ClassVar[int] = 1172
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"role": JoinRole}
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("token")
    COLUMNS: ClassVar[Columns] = {"name": "token_id"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("join-token",)

    token_id: str
    """The first 16 hexadecimal digits of `sha256`."""
    sha256: bytes
    role: Int8
    """A `JoinRole`."""
    node_id: BrokerId
    hosts: tuple[str, ...]
    """The names and addresses that the node's certificate gets."""
    made_by: str
    created_ms: Int64
    expires_ms: Int64
    revoked_ms: Int64
    """-1: it is not revoked."""
    used_ms: Int64
    """-1: no node has used it."""
    key_sha256: bytes
    """Of the public key with which it was used; empty: no node has used it."""
    certificate: bytes
    """The certificate that was made, in DER; empty: no node has used it."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"join-token:{self.token_id}",)


class RemoveJoinTokenRecord(Record, frozen=True, tag=117300):
    """Forgets a join token that ended some time ago. Ours."""

    TYPE_ID: ClassVar[int] = 1173
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    COLUMNS: ClassVar[Columns] = {"name": "token_id"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("join-token",)

    token_id: str

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"join-token:{self.token_id}",)


class CertificateRevocationRecord(Record, frozen=True, tag=117400):
    """Refuses certificates that are valid by their own content. Ours; times in ms."""

    TYPE_ID: ClassVar[int] = 1174
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"kind": RevokedBy}
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("user")
    COLUMNS: ClassVar[Columns] = {"name": "value"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("certificate", "user")

    kind: Int8
    """A `RevokedBy`."""
    value: str
    """The serial number, or the principal."""
    before_ms: Int64
    """Of a principal: only certificates that begin before this time are refused."""
    revoked_by: str
    revoked_ms: Int64

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"certificate:{self.value}", *user_words(self.value))


class RemoveCertificateRevocationRecord(Record, frozen=True, tag=117500):
    """Takes a revocation back. Ours."""

    TYPE_ID: ClassVar[int] = 1175
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"kind": RevokedBy}
    NEEDS: ClassVar[tuple[Need, ...]] = _NEEDS
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("user")
    COLUMNS: ClassVar[Columns] = {"name": "value"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("certificate", "user")

    kind: Int8
    """A `RevokedBy`."""
    value: str

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"certificate:{self.value}", *user_words(self.value))
