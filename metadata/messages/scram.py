"""SCRAM credentials. `POST /v1/users/scram`, `GET /v1/users`, `GET /v1/users/{name}` (KIP-554)."""

from typing import Annotated, Any, Final

from msgspec import Meta

from metadata.messages.errors import ErrorReply
from metadata.messages.message import ReplyMessage, RequestMessage
from metadata.records import ScramMechanism
from metadata.types import Int32

ALTERATIONS_PER_REQUEST = 1_000
SALT_BYTES: Final = 24
"""Of a salt that our commands choose, and of the salt that an unknown user is told."""
MECHANISMS: Final = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
"""The names of mechanisms in requests and replies, and what stands for them in records."""
_Secret = Annotated[bytes, Meta(max_length=256)]


class ScramUpsertion(RequestMessage, frozen=True):
    """Set a credential. The password itself is never sent."""

    name: str
    mechanism: str
    """SCRAM-SHA-256 or SCRAM-SHA-512."""
    iterations: Int32
    """4,096 to 16,384."""
    salt: _Secret
    salted_password: _Secret
    """PBKDF2 of the password, with this salt and this number of iterations."""

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.name!r}, {self.mechanism!r}, {self.iterations})"


class ScramDeletion(RequestMessage, frozen=True):
    """Remove a credential."""

    name: str
    mechanism: str


class AlterScramRequest(RequestMessage, frozen=True):
    """Set and remove credentials. For each user all changes are made, or none."""

    upsertions: Annotated[tuple[ScramUpsertion, ...], Meta(max_length=ALTERATIONS_PER_REQUEST)] = ()
    deletions: Annotated[tuple[ScramDeletion, ...], Meta(max_length=ALTERATIONS_PER_REQUEST)] = ()
    dry_run: bool = False


class AlteredUser(ReplyMessage, frozen=True):
    """The result for one user of an AlterScramRequest."""

    name: str
    error: ErrorReply | None = None


class AlterScramReply(ReplyMessage, frozen=True):
    """The result for each user, and the log's end after the change."""

    users: tuple[AlteredUser, ...]
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class ScramCredential(ReplyMessage, frozen=True):
    """A credential without its secrets."""

    mechanism: str
    iterations: int


class UserDescription(ReplyMessage, frozen=True):
    """One user that has credentials."""

    name: str
    credentials: tuple[ScramCredential, ...]


class ListUsersReply(ReplyMessage, frozen=True):
    """The users that have credentials, by name, from one image."""

    offset: int
    epoch: int
    users: tuple[UserDescription, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there are more: ask again with it as `continuation`. The next page may continue with
    the last user of this one."""


class DescribeUserReply(ReplyMessage, frozen=True):
    """One user."""

    offset: int
    epoch: int
    user: UserDescription
    age_ms: int | None = 0
