"""Opens what the image holds sealed, for a broker that verifies logins (ADR 0031, 0038).

Rule: a secret leaves this module only as the return value of the method that opens it. No text of
an object here shows a secret, and nothing here is logged. The image itself never holds an opened
secret.

Logs of other builds may hold secrets in clear. They are returned as they are.

Rule: a login of a user who does not exist is told a salt, too, the same on all nodes and after a
restart. Otherwise two nodes together would show who is a user. All nodes make it with the cluster
key. A node with another key than the log names looks for no user, and takes no login by SCRAM.

A node without the cluster key makes the salt with the first credential in the log, if that is in
clear. So it changes with that user's password, and differs from that of nodes with the key. If the
first credential is sealed, a node without the key takes no login by SCRAM.
"""

import hmac
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from metadata.image import MetadataImage
from metadata.image.tokens import expiry_of
from metadata.messages.declared import DEFAULT_ITERATIONS
from metadata.messages.scram import SALT_BYTES
from metadata.records import ConfigResourceType, ScramMechanism
from metadata.sealed_blocks import SealingError, key_id_of
from metadata.sealed_places import config_place, scram_place, token_hmac
from metadata.sealed_texts import block_of_text
from metadata.sealing import ClusterKey

_NOBODY: Final = "salts of nobody"


class OpenedCredential(msgspec.Struct, frozen=True):
    """What verifies a user's SCRAM login (RFC 5802). Its text shows no secret."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"OpenedCredential(iterations={self.iterations}, ***)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("iterations", self.iterations)]


class Salting(NamedTuple):
    """What a client needs to make the proof of a password."""

    salt: bytes
    iterations: int


class OpenedToken(msgspec.Struct, frozen=True):
    """A delegation token that the cluster knows (KIP-48). Its text shows no secret."""

    token_id: str
    owner: str
    """Who is logged in with it."""
    expiry_ms: int
    """It counts before this time, in ms since 1970."""
    hmac: bytes
    """Its secret, 64 bytes. Clients log in by SCRAM with the base64 of it as password."""

    def __repr__(self) -> str:
        return f"OpenedToken({self.token_id!r}, owner={self.owner!r}, ***)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("token_id", self.token_id), ("owner", self.owner)]


class Secrets:
    """The secrets of the newest image. Each call reads that image anew."""

    def __init__(self, image: Callable[[], MetadataImage], key: ClusterKey | None) -> None:
        """`key` None: only what is in clear can be read."""
        self._image = image
        self._key = key

    def __repr__(self) -> str:
        return f"Secrets({self._key!r})"

    @property
    def has_key(self) -> bool:
        """Whether there is a cluster key."""
        return self._key is not None

    def scram(self, user: str, mechanism: ScramMechanism) -> OpenedCredential | None:
        """Return a user's credential; None: the user has none. Raises SealingError."""
        record = self._image().scram.credentials.get((user, int(mechanism)))
        if record is None:
            return None
        return OpenedCredential(
            record.salt,
            record.iterations,
            self._opened(scram_place(user, mechanism, "storedKey"), record.stored_key),
            self._opened(scram_place(user, mechanism, "serverKey"), record.server_key),
        )

    def salting(self, user: str, mechanism: ScramMechanism) -> Salting:
        """Return what a login by SCRAM is told first, whether or not there is such a user.

        Raises SealingError where this node has no right key, whoever the user is.
        """
        image = self._image()
        made_up = self._salt_of_nobody(image, f"{int(mechanism)} {user}".encode())
        record = image.scram.credentials.get((user, int(mechanism)))
        if record is None:
            return Salting(made_up[:SALT_BYTES], DEFAULT_ITERATIONS)
        return Salting(record.salt, record.iterations)

    def _salt_of_nobody(self, image: MetadataImage, about: bytes) -> bytes:
        """Raises SealingError."""
        if self._key is None:
            return hmac.digest(self._first_in_clear(image), about, "sha256")
        named = image.quorum.cluster_key_id
        if named is not None and named != self._key.id:
            raise SealingError(
                f"the log names cluster key {named.hex()}, and this one is {self._key.id.hex()}"
            )
        return self._key.mac(_NOBODY, about)

    def _first_in_clear(self, image: MetadataImage) -> bytes:
        """Return the stored key of the first credential; empty: there is none.

        Raises SealingError if it is sealed.
        """
        first = next(iter(image.scram.order), None)
        if first is None:
            return b""
        stored_key = image.scram.credentials[first].stored_key
        if key_id_of(stored_key) is not None:
            self._usable_key()
        return stored_key

    def token(self, token_id: str) -> OpenedToken | None:
        """Return a token; None: there is none. Raises SealingError without a cluster key.

        It may have expired: compare `expiry_ms` with the time.
        """
        record = self._image().tokens.tokens.get(token_id)
        if record is None:
            return None
        secret = token_hmac(self._usable_key(), token_id)
        return OpenedToken(token_id, record.owner, expiry_of(record)[0], secret)

    def config(self, resource_type: ConfigResourceType, name: str, key: str) -> str | None:
        """Return a resource's own value of a config, opened; None: it has none.

        `name` empty with BROKER: the default of all brokers. Raises SealingError.
        """
        value = self._image().configs.value(int(resource_type), name, key)
        block = None if value is None else block_of_text(value)
        if block is None:
            return value
        return self._usable_key().open(config_place(resource_type, name, key), block).decode()

    def _opened(self, place: str, block: bytes) -> bytes:
        return block if key_id_of(block) is None else self._usable_key().open(place, block)

    def _usable_key(self) -> ClusterKey:
        if self._key is None:
            raise SealingError(
                "this agent has no cluster key: give it the one of the controllers "
                "(BrokerAgent(cluster_key=read_cluster_key(path)))"
            )
        return self._key
