"""The steps of a login by SASL on one connection (KIP-43, KIP-152).

Rule: SaslHandshake names the mechanism, then SaslAuthenticate carries its messages. A step out of
this order fails with ILLEGAL_SASL_STATE. A login that failed ends the connection. Logging in again
on the same connection is not offered (KIP-368): a login counts as long as its credential does.

A step may take its time, as another process may have to check the credential. The session handles
no other request of the connection meanwhile.
"""

from collections.abc import Callable
from typing import NamedTuple

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Fields
from kafka_listener.serving.api_versions import SASL_HANDSHAKE
from kafka_listener.serving.login_refused import LoginRefusedError
from kafka_listener.serving.logins import LoginExchange, Logins
from runtime.http.requests import Caller
from runtime.sessions.interface import PeerOnWire


class LoginStep(NamedTuple):
    """What follows from one request of a login."""

    answer: Fields
    refused: str = ""
    """Why the connection ends after the answer; empty: it does not."""
    caller: Caller | None = None
    """Who has logged in by this step."""
    user: str = ""
    """The name that a client gave whose login is refused; nobody has checked it."""


OnStep = Callable[[LoginStep], None]


class LoginSteps:
    """The login of one connection."""

    def __init__(self, logins: Logins, peer: PeerOnWire) -> None:
        self._logins = logins
        self._peer = peer
        self._exchange: LoginExchange | None = None
        self._logged_in: LoginExchange | None = None

    def take(self, api_key: int, fields: Fields, then: OnStep) -> None:
        """Take SaslHandshake or SaslAuthenticate; `then` hears what follows, once, now or later."""
        if api_key == SASL_HANDSHAKE:
            then(self._handshake(fields["Mechanism"]))
        else:
            self._authenticate(fields["AuthBytes"], then)

    def still_known(self) -> bool:
        """Tell whether the credential that was shown would be taken now, too."""
        if self._logged_in is not None:
            return self._logged_in.still_known()
        try:
            self._logins.of_peer(self._peer)
        except LoginRefusedError:
            return False
        return True

    def _handshake(self, mechanism: str) -> LoginStep:
        offered = self._logins.mechanisms(tls=self._peer.tls)
        answer: Fields = {"Mechanisms": list(offered)}
        if self._exchange is not None or self._logged_in is not None:
            return _refused(answer, KafkaCode.ILLEGAL_SASL_STATE, "a login has begun already")
        if mechanism not in offered:
            return _refused(
                answer,
                KafkaCode.UNSUPPORTED_SASL_MECHANISM,
                f"the SASL mechanism {mechanism[:50]!r} is not offered here",
            )
        self._exchange = self._logins.exchange(mechanism, self._peer)
        return LoginStep(answer)

    def _authenticate(self, message: bytes, then: OnStep) -> None:
        exchange = self._exchange
        if exchange is None:
            why = "SaslAuthenticate came without a handshake"
            then(_refused({}, KafkaCode.ILLEGAL_SASL_STATE, why))
            return

        def on_message(answer: bytes | LoginRefusedError) -> None:
            if isinstance(answer, LoginRefusedError):
                failed = _refused({}, KafkaCode.SASL_AUTHENTICATION_FAILED, str(answer))
                then(failed._replace(user=exchange.user))
                return
            if exchange.caller is not None:
                self._logged_in, self._exchange = exchange, None
            then(LoginStep({"AuthBytes": answer}, caller=exchange.caller))

        try:
            exchange.step(message, on_message)
        except LoginRefusedError as error:
            on_message(error)


def _refused(answer: Fields, code: KafkaCode, why: str) -> LoginStep:
    found: Fields = {**answer, "ErrorCode": int(code)}
    if "Mechanisms" not in answer:
        found["ErrorMessage"] = why
    return LoginStep(found, refused=why)
