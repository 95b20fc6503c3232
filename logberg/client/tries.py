"""What one try of a request came to, and which URL to try next.

Rule: a try that failed is a `Retry` if another try may help, and a `ClientError` if not. The next
try goes to the leader that the answer names, else to the next controller.
"""

import ssl
from typing import Any, TypeVar

import aiohttp
import msgspec

from logberg.client.client_errors import ClientError, no_answer
from metadata.errors import ErrorCode
from metadata.messages.errors import ErrorReply
from runtime.http.origins import may_follow
from runtime.randomness import Random

T = TypeVar("T")

_RETRY_STATUS = frozenset({421, 429, 502, 503, 504})
"""Proxies send 502 and 504; controllers send the others."""
_TOO_MANY = 429
_PAUSE_S = 0.05
_FOLLOWED_AT_ONCE = 2
"""Leaders' URLs followed without a pause. Two controllers may name each other for ever."""
_URLS_MAX = 64
_NOBODY_ASKED = ClientError("NO_ANSWER", "no controller was asked")


class Retry(Exception):  # noqa: N818 - a signal within this room, not an error of its own
    """A try failed, and another one may succeed."""

    def __init__(
        self,
        error: ClientError,
        leader: str | None = None,
        wait_s: float = 0.0,
        *,
        hopeless: bool = False,
        silent: bool = False,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.leader = leader
        self.wait_s = wait_s
        self.hopeless = hopeless
        """Asking the same URL again can't succeed."""
        self.silent = silent
        """The deadline of the try passed without an answer."""


class UrlOrder:
    """Chooses the URL of the next try, and the pause before it."""

    def __init__(self, urls: list[str], random: Random) -> None:
        """`urls`: those known; a leader that an answer names is added."""
        self._urls = urls
        self._random = random
        self._at = 0
        self._followed = 0
        self._hopeless: dict[str, ClientError] = {}
        self._last = _NOBODY_ASKED
        self._weight = 0

    @property
    def url(self) -> str | None:
        """The URL to ask; None when no URL is worth another try."""
        for at in range(self._at, self._at + len(self._urls)):
            url = self._urls[at % len(self._urls)]
            if url not in self._hopeless:
                self._at = at % len(self._urls)
                return url
        return None

    @property
    def why(self) -> ClientError:
        """The most helpful of the errors of all tries."""
        return next(iter(self._hopeless.values()), self._last)

    def after(self, retry: "Retry") -> float:
        """Take note of a try that failed. Returns the seconds until the next one."""
        asked = self._urls[self._at]
        # What a controller answered says more than a connection that broke, and that says more
        # than silence: the last try has little time left.
        weight = 2 if retry.error.status else 0 if retry.silent else 1
        if weight >= self._weight:
            self._last, self._weight = retry.error, weight
        if retry.hopeless:
            self._hopeless[asked] = retry.error
            return 0.0
        if self._follow(asked, retry.leader):
            self._followed += 1
            return 0.0 if self._followed % (_FOLLOWED_AT_ONCE + 1) else _PAUSE_S
        if retry.wait_s > 0:
            # This is the leader, and it is overloaded. Jitter spreads the clients that retry.
            return retry.wait_s * (1 + 0.5 * self._random.random())
        self._at = (self._at + 1) % len(self._urls)
        return _PAUSE_S

    def settled(self) -> None:
        """A request was answered: forget what failed before it, but not which URL answered."""
        self._followed = self._weight = 0
        self._hopeless.clear()
        self._last = _NOBODY_ASKED

    def _follow(self, asked: str, leader: str | None) -> bool:
        """Go to the leader that `asked` named. Returns False if it named no usable one."""
        if leader is None or leader == asked or not may_follow(asked, leader):
            return False
        if leader not in self._urls:
            if len(self._urls) >= _URLS_MAX:
                return False
            self._urls.append(leader)
        self._at = self._urls.index(leader)
        return True


def not_connected(url: str, error: aiohttp.ClientError) -> Retry:
    """The connection was never made, so nothing was sent."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = error.certificate_error
        if isinstance(why, ssl.SSLCertVerificationError) and not getattr(why, "verify_code", 0):
            # The certificate is sound, and `runtime.sockets.peer_proof` refused it.
            refused = f"the token is not sent to {url}: {why.strerror or why}"
        else:
            refused = f"{url}: {why}; name the CA of its cluster with --ca (LOGBERG_CA)"
        return Retry(ClientError("CERTIFICATE_REFUSED", refused), hopeless=True)
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        plain = "WRONG_VERSION_NUMBER" in str(error) or "RECORD_LAYER_FAILURE" in str(error)
        said = f"{url} doesn't use TLS" if plain else f"{url}: no TLS connection ({error})"
        advice = "; use http://, or check the port" if plain else ""
        return Retry(ClientError("NO_TLS", said + advice), hopeless=plain)
    return Retry(no_answer(url, str(error) or type(error).__name__))


def broken(url: str, error: Exception, deadline_s: float) -> ClientError:
    """The request may have been sent."""
    if isinstance(error, TimeoutError):
        return no_answer(url, f"no answer within {deadline_s:.1f} s")
    hung_up = isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError))
    if url.startswith("http://") and (hung_up or isinstance(error, aiohttp.ClientResponseError)):
        return no_answer(url, "it doesn't use plain HTTP; if it uses TLS, use https://")
    if hung_up:
        # A TLS 1.3 server that doesn't accept our certificate also closes the connection.
        return no_answer(
            url, f"it closed the connection ({error}); check that it trusts our certificate"
        )
    return no_answer(url, str(error) or type(error).__name__)


def read_answer(status: int, body: bytes, url: str, wanted: type[T]) -> T:
    """Return the message that was answered. Raises Retry, ClientError."""
    if 200 <= status < 300:
        if issubclass(wanted, bytes):
            return wanted(body)
        try:
            return msgspec.json.decode(body, type=wanted)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            # A change may have been made all the same.
            code = ErrorCode.UNKNOWN_SERVER_ERROR.value
            said = f"{url} did not answer with {wanted.__name__}: {problem}"
            raise ClientError(code, f"{said}; check that it is a controller", status) from None
    try:
        value = msgspec.json.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    reply = _error_reply(value, status, url)
    error = ClientError(reply.code, reply.message, status, reply)
    if status in _RETRY_STATUS:
        wait_ms = reply.retry_after_ms if status == _TOO_MANY else None
        raise Retry(error, reply.leader_url, (wait_ms or 0) / 1000)
    raise error


def _error_reply(value: Any, status: int, url: str) -> ErrorReply:
    """Read an error's body, or make one from the status if the body is not an `ErrorReply`."""
    try:
        return msgspec.convert(value, ErrorReply)
    except msgspec.ValidationError:
        said = value if isinstance(value, dict) else {}
        code = str(said.get("code", f"HTTP_{status}"))
        return ErrorReply(code, str(said.get("message", f"{url} answered {status}")))
