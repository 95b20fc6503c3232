"""Who a connection's caller is: by its certificate, or by SASL (KIP-43, KIP-152).

    certificate            as on every other port of this process
    PLAIN                  the password is a bearer token of this process, or a delegation token of
                           the log; the user name is that of the bearer token's principal (any
                           name where the log has a pseudonym), or the delegation token's id. Only
                           over TLS, because the token is sent in clear
    SCRAM-SHA-256 and 512  a credential of the log (RFC 5802). Kafka's brokers have no other name
                           than the user's, so the settings say which users are which brokers

Rule: without one of them the caller is User:ANONYMOUS. If authentication is required, an anonymous
caller may ask for versions and log in, nothing else.

A controller knows the bearer tokens itself. An agent has the controllers check them
(`passed_tokens`), so the answer to a message may come later.
"""

import hmac
from base64 import b64encode
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from kafka_listener.serving.login_refused import LoginRefusedError
from kafka_listener.serving.scram_exchange import CredentialSource, ScramExchange
from metadata.messages.wire import decode_error
from metadata.pseudonyms import is_pseudonym
from metadata.records import ScramMechanism
from metadata.sealed_blocks import SealingError
from runtime.http.requests import Caller, Reply
from runtime.randomness import Random
from runtime.sessions.interface import PeerOnWire
from runtime.sockets.credentials import PeerCertificate, ShownToken

PLAIN: Final = "PLAIN"
SCRAM: Final[Mapping[str, ScramMechanism]] = MappingProxyType(
    {
        "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
        "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
    }
)
MECHANISMS: Final = (PLAIN, *SCRAM)
BY_DELEGATION: Final = "delegation-token"
"""How a caller has authenticated that logged in with one."""
NOT_KNOWN: Final = "user name or token is not known here"
_NONCE_BYTES: Final = 18
Authenticate = Callable[
    [PeerCertificate | None, ShownToken | None, int | None, str], Caller | Reply
]
"""Takes a certificate, a bearer token, a unix user and an address, as the HTTP server's."""
NowMs = Callable[[], int]
OnMessage = Callable[[bytes | LoginRefusedError], None]
"""Gets our message of a login, or why the login fails."""


class LoginExchange(Protocol):
    """The messages of one login by SASL."""

    def step(self, message: bytes, then: OnMessage) -> None:
        """Take a message of the client; `then` gets ours, once, now or later.

        Raises LoginRefusedError, and then does not call `then`.
        """

    def still_known(self) -> bool:
        """Tell whether the credential of a login that succeeded would be taken now, too."""

    @property
    def caller(self) -> Caller | None:
        """Who logged in; None: the exchange is not over."""

    @property
    def user(self) -> str:
        """The name that the client gave itself, checked or not; empty: none yet."""


class PlainExchange:
    """PLAIN (RFC 4616): one message with user name and token.

    The token is a bearer token of this process, or the base64 of a delegation token's HMAC with its
    id as user name (KIP-48). Whoever logs in with a delegation token is its owner.
    """

    def __init__(
        self,
        authenticate: Authenticate,
        address: str,
        credentials: CredentialSource,
        now_ms: NowMs | None,
    ) -> None:
        self._authenticate = authenticate
        self._address = address
        self._credentials = credentials
        self._now_ms = now_ms
        self.user = ""
        self._token = ShownToken("")
        self.caller: Caller | None = None

    def step(self, message: bytes, then: OnMessage) -> None:
        """Check the token. Raises LoginRefusedError."""
        self.user, token = user_and_token(message)
        self._token = ShownToken(token)
        found = self._known()
        # One sentence for all causes, so that nobody can find out which tokens there are.
        if found is None:
            raise LoginRefusedError(NOT_KNOWN)
        self.caller = found
        then(b"")

    def still_known(self) -> bool:
        """Ask for the token again."""
        try:
            return self._known() == self.caller
        except LoginRefusedError:
            return False

    def _known(self) -> Caller | None:
        found = self._authenticate(None, self._token, None, self._address)
        if isinstance(found, Reply) or found.only_path:
            return self._of_delegation_token()
        # The log has no name of a person who has a pseudonym. The token alone proves who it is.
        named = self.user == found.principal.partition(":")[2]
        return found if named or is_pseudonym(found.principal) else None

    def _of_delegation_token(self) -> Caller | None:
        if self._now_ms is None:
            return None
        try:
            known = self._credentials.token(self.user)
        except SealingError:
            raise LoginRefusedError("this node can't open the cluster's tokens") from None
        if known is None or self._now_ms() >= known.expiry_ms:
            return None
        if not hmac.compare_digest(b64encode(known.hmac), self._token.text.encode()):
            return None
        return Caller(known.owner, BY_DELEGATION, self._address)


def user_and_token(message: bytes) -> tuple[str, str]:
    """Return the user name and the token in a message of PLAIN. Raises LoginRefusedError."""
    parts = message.split(b"\0")
    if len(parts) != 3:
        raise LoginRefusedError("a PLAIN message has three parts: identity, user name, token")
    try:
        identity, user, token = (part.decode() for part in parts)
    except UnicodeDecodeError:
        raise LoginRefusedError("a PLAIN message is text in UTF-8") from None
    if identity not in ("", user):
        raise LoginRefusedError("a client can't log in for another user")
    return user, token


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
        now_ms: NowMs | None = None,
        plain: Callable[[str], LoginExchange] | None = None,
        brokers: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`required`: nobody may be anonymous. `brokers`: users who log in by SCRAM as a broker.

        `now_ms` is the wall clock; None: delegation tokens don't log in. `plain` begins a login by
        PLAIN for an address; by default the tokens of this process count.
        """
        self._plain = plain or (
            lambda address: PlainExchange(authenticate, address, credentials, now_ms)
        )
        self._authenticate = authenticate
        self._credentials = credentials
        self._random = random
        self._mechanisms = mechanisms
        self.required = required
        self._brokers = brokers

    def of_peer(self, peer: PeerOnWire) -> Caller:
        """Return who the connection itself names. Raises LoginRefusedError."""
        if peer.certificate_problem is not None:
            raise LoginRefusedError(peer.certificate_problem)
        found = self._authenticate(peer.certificate, None, None, peer.address)
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
            return self._plain(peer.address)
        nonce = self._random.randbytes(_NONCE_BYTES).hex()
        return ScramExchange(
            SCRAM[mechanism], self._credentials, nonce, peer.address, self._principal_of
        )

    def _principal_of(self, user: str) -> str:
        broker = self._brokers.get(user)
        return f"User:{user}" if broker is None else f"Broker:{broker}"
