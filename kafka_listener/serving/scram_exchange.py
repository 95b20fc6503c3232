"""The server's side of a SCRAM login (RFC 5802), without channel binding.

Rule: an unknown user gets the same first answer as a known one: as many iterations and as long a
salt as a user has by default, and a salt that is the same on all nodes and after a restart. So a
client can't find out which users there are. Whoever is unknown, has another password, or has a
credential that can't be opened here, is refused with one sentence. Nothing of a credential is
logged.

What is left: a user whose password was set with another number of iterations, or with a salt of
another client, differs by that, and a new password brings a new salt. The final message of a known
user takes some tenths of a millisecond more, because its credential is opened.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from kafka_listener.serving.login_refused import LoginRefusedError
from metadata.records import ScramMechanism
from metadata.sealed_blocks import SealingError
from runtime.http.requests import Caller

_HASHES: Final[Mapping[ScramMechanism, str]] = MappingProxyType(
    {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}
)
_METHOD: Final = "scram"
_NO_BINDING: Final = ("n", "y")
_REFUSED: Final = "user name or password is not known here"


class ScramKeys(Protocol):
    """What verifies one user's login."""

    @property
    def stored_key(self) -> bytes:
        """Verifies the client."""

    @property
    def server_key(self) -> bytes:
        """Proves to the client that we know it."""


class DelegationSecret(Protocol):
    """A delegation token and its secret."""

    @property
    def owner(self) -> str:
        """The principal who is logged in with it."""

    @property
    def expiry_ms(self) -> int:
        """It counts before this time, in ms since 1970."""

    @property
    def hmac(self) -> bytes:
        """Its secret."""


class CredentialSource(Protocol):
    """Where credentials come from. `broker_agent.opened_secrets.Secrets` is one."""

    def scram(self, user: str, mechanism: ScramMechanism) -> ScramKeys | None:
        """Return a user's credential; None: there is none. Raises SealingError."""

    def salting(self, user: str, mechanism: ScramMechanism) -> tuple[bytes, int]:
        """Return salt and iterations of a user's password, made up for an unknown user.

        They are the same on all nodes. Raises SealingError where no credential can be opened.
        """

    def token(self, token_id: str) -> DelegationSecret | None:
        """Return a delegation token; None: there is none. Raises SealingError."""


class ScramExchange:
    """One login: the client's first and final message."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        credentials: CredentialSource,
        nonce: str,
        address: str,
        principal_of: Callable[[str], str],
    ) -> None:
        """`nonce`: nobody can foresee it. `principal_of` names who has logged in as a user."""
        self._mechanism = mechanism
        self._hash = _HASHES[mechanism]
        self._credentials = credentials
        self._server_nonce = nonce
        self._address = address
        self._principal_of = principal_of
        self.user = ""
        self._keys: ScramKeys | None = None
        self._nonce = ""
        self._signed = ""
        """The text that both sides sign, but for the client's final message."""
        self._header = ""
        self.caller: Caller | None = None

    def step(self, message: bytes, then: Callable[[bytes], None]) -> None:
        """Take the client's next message, and give `then` ours. Raises LoginRefusedError."""
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise LoginRefusedError("a SCRAM message is text in UTF-8") from None
        then((self._final(text) if self._nonce else self._first(text)).encode())

    def still_known(self) -> bool:
        """Tell whether the user's password is still the one of this login."""
        try:
            now = self._known()
        except LoginRefusedError:  # the agent is not in service
            return False
        return (
            now is not None
            and self._keys is not None
            and hmac.compare_digest(now.stored_key, self._keys.stored_key)
        )

    def _first(self, text: str) -> str:
        binding, _, rest = text.partition(",")
        identity, _, bare = rest.partition(",")
        found = _attributes(bare)
        if binding not in _NO_BINDING or not found.get("n") or not found.get("r"):
            raise LoginRefusedError("not a SCRAM client's first message without channel binding")
        self.user = found["n"].replace("=2C", ",").replace("=3D", "=")
        if identity not in ("", f"a={found['n']}"):
            raise LoginRefusedError("a client can't log in for another user")
        self._header = f"{binding},{identity},"
        self._nonce = found["r"] + self._server_nonce
        try:
            salt, iterations = self._credentials.salting(self.user, self._mechanism)
        except SealingError:
            raise LoginRefusedError("this node can't open the cluster's credentials") from None
        answer = f"r={self._nonce},s={b64encode(salt).decode()},i={iterations}"
        self._signed = f"{bare},{answer}"
        return answer

    def _known(self) -> ScramKeys | None:
        try:
            return self._credentials.scram(self.user, self._mechanism)
        except SealingError:
            # An own sentence would say that there is such a user.
            return None

    def _final(self, text: str) -> str:
        without_proof, _, proof = text.rpartition(",p=")
        found = _attributes(without_proof)
        try:
            header, proven = b64decode(found.get("c", ""), validate=True), b64decode(proof)
        except ValueError:  # also a letter that is not ASCII
            raise LoginRefusedError("not a SCRAM client's final message") from None
        if header != self._header.encode() or found.get("r") != self._nonce:
            raise LoginRefusedError("the SCRAM messages don't belong together")
        signed = f"{self._signed},{without_proof}".encode()
        self._keys = self._known()
        if self._keys is None or not self._proves(self._keys, signed, proven):
            raise LoginRefusedError(_REFUSED)
        self.caller = Caller(self._principal_of(self.user), _METHOD, self._address)
        signature = hmac.digest(self._keys.server_key, signed, self._hash)
        return f"v={b64encode(signature).decode()}"

    def _proves(self, keys: ScramKeys, signed: bytes, proof: bytes) -> bool:
        signature = hmac.digest(keys.stored_key, signed, self._hash)
        if len(proof) != len(signature):
            return False
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored = hashlib.new(self._hash, client_key).digest()
        return hmac.compare_digest(stored, keys.stored_key)


def _attributes(text: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}
