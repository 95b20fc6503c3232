"""Who a connection's caller is: by its certificate, or by SASL (KIP-43, KIP-152).

    certificate            as on every other port of this process
    PLAIN                  the password is a bearer token of this process; the user name is that of
                           the token's principal. Only over TLS, because the token is sent in clear
    SCRAM-SHA-256 and 512  a credential of the log (RFC 5802)

Rule: without one of them the caller is User:ANONYMOUS. If authentication is required, an anonymous
caller may ask for versions and log in, nothing else. Delegation tokens don't log in here.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from kafka_listener.serving.login_refused import LoginRefusedError
from kafka_listener.serving.scram_exchange import CredentialSource, ScramExchange
from metadata.messages.wire import decode_error
from metadata.records import ScramMechanism
from runtime.http.requests import Caller, Reply
from runtime.randomness import Random
from runtime.sessions.interface import PeerOnWire

PLAIN: Final = "PLAIN"
SCRAM: Final[Mapping[str, ScramMechanism]] = MappingProxyType(
    {
        "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
        "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
    }
)
MECHANISMS: Final = (PLAIN, *SCRAM)
_SECRET_BYTES: Final = 32
_NONCE_BYTES: Final = 18
Authenticate = Callable[[str | None, str | None, int | None, str], Caller | Reply]
"""Takes a certificate's URI, a bearer token, a unix user and an address, as the HTTP server's."""


class LoginExchange(Protocol):
    """The messages of one login by SASL."""

    def step(self, message: bytes) -> bytes:
        """Take a message of the client, return ours. Raises LoginRefusedError."""

    def still_known(self) -> bool:
        """Tell whether the credential of a login that succeeded would be taken now, too."""

    @property
    def caller(self) -> Caller | None:
        """Who logged in; None: the exchange is not over."""


class PlainExchange:
    """PLAIN (RFC 4616): one message with user name and token."""

    def __init__(self, authenticate: Authenticate, address: str) -> None:
        self._authenticate = authenticate
        self._address = address
        self._token = ""
        self.caller: Caller | None = None

    def step(self, message: bytes) -> bytes:
        """Check the token. Raises LoginRefusedError."""
        parts = message.split(b"\0")
        if len(parts) != 3:
            raise LoginRefusedError("a PLAIN message has three parts: identity, user name, token")
        try:
            identity, user, token = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise LoginRefusedError("a PLAIN message is text in UTF-8") from None
        found = self._authenticate(None, token, None, self._address)
        # One sentence for all causes, so that nobody can find out which tokens there are.
        if isinstance(found, Reply) or user != found.principal.partition(":")[2]:
            raise LoginRefusedError("user name or token is not known here")
        if identity not in ("", user):
            raise LoginRefusedError("a client can't log in for another user")
        self.caller, self._token = found, token
        return b""

    def still_known(self) -> bool:
        """Ask for the token again."""
        return self._authenticate(None, self._token, None, self._address) == self.caller


class Logins:
    """What callers of one listener may log in with."""

    def __init__(
        self,
        authenticate: Authenticate,
        credentials: CredentialSource,
        random: Random,
        *,
        mechanisms: tuple[str, ...],
        required: bool,
    ) -> None:
        """`required`: nobody may be anonymous."""
        self._authenticate = authenticate
        self._credentials = credentials
        self._random = random
        self._secret = random.randbytes(_SECRET_BYTES)
        self._mechanisms = mechanisms
        self.required = required

    def of_peer(self, peer: PeerOnWire) -> Caller:
        """Return who the connection itself names. Raises LoginRefusedError."""
        if peer.certificate_problem is not None:
            raise LoginRefusedError(peer.certificate_problem)
        found = self._authenticate(peer.certificate_uri, None, None, peer.address)
        if isinstance(found, Reply):
            content_type = found.headers.get("content-type", "")
            raise LoginRefusedError(decode_error(found.status, found.body, content_type).message)
        return found

    def mechanisms(self, *, tls: bool) -> tuple[str, ...]:
        """Return the mechanisms that a connection may use."""
        return tuple(name for name in self._mechanisms if tls or name != PLAIN)

    def exchange(self, mechanism: str, peer: PeerOnWire) -> LoginExchange:
        """Begin a login by one of `mechanisms`."""
        if mechanism == PLAIN:
            return PlainExchange(self._authenticate, peer.address)
        nonce = self._random.randbytes(_NONCE_BYTES).hex()
        return ScramExchange(SCRAM[mechanism], self._credentials, nonce, peer.address, self._secret)
