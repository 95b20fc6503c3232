"""One connection: its frames, its caller, and one request at a time.

Rules:

- Requests of a connection are handled one after another, and answered in that order, as in Kafka.
- What can't be read, and what this listener does not serve, ends the connection, as in Kafka. The
  log gets one line, with a limit on their number (`runtime.sockets.refusals`). A version of
  ApiVersions that is too new is answered.
- A request that reached its handler is answered: by the handler, or by an error if the handler
  fails or takes too long. Later answers of the handler are dropped.
- While an answer is not read by the client, or a request is under way, nothing more is read.
- Many short requests that come together take turns with the rest of the loop.
"""

from typing import Final

from kafka_listener.asking.failures import failure
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Fields, KafkaFailure, KafkaRequest
from kafka_listener.serving.api_versions import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    api_versions_answer,
    bad_software,
)
from kafka_listener.serving.frames import FrameBuffer, framed
from kafka_listener.serving.login_refused import LoginRefusedError
from kafka_listener.serving.login_steps import LoginStep, LoginSteps
from kafka_listener.serving.service import FAILED, REFUSED, KafkaService
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.messages import (
    API_VERSIONS,
    RequestHeader,
    api_name,
    decode_counted_request,
    decode_request_header,
    encode_response,
    encode_response_header,
    peek_request_header,
)
from runtime.http.requests import Caller
from runtime.loop.slices import LoopShare
from runtime.sessions.interface import ByteLink, PeerOnWire
from runtime.sockets.byte_budget import ByteClaim

_TICK_S: Final = 1.0
_BEFORE_LOGIN: Final = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE})
_ENVELOPE: Final = 58
_ELEMENT_BYTES: Final = 256
"""What an element of an array takes in memory, about."""
_ENVELOPE_BYTES: Final = 64
"""What a byte of an envelope may take once the request inside is decoded, about."""


class KafkaSession:
    """The session of one connection. It is a `runtime.sessions.interface.ByteSession`."""

    def __init__(self, service: KafkaService, link: ByteLink, peer: PeerOnWire) -> None:
        self._service = service
        self._link = link
        self._peer = peer
        self._frames = FrameBuffer()
        self._claim = service.budget.claim(peer.address, self._gives_way)
        self._caller: Caller | None = None
        """None: not known yet."""
        self._steps = LoginSteps(service.logins, peer)
        self._under_way: _OpenRequest | None = None
        self._logging_in = False
        """A step of the login is under way."""
        self._bare_login = False
        """The next frames are messages of SASL without headers: SaslHandshake had version 0."""
        self._blocked = False
        self._ended = False
        self._working = False
        self._share = LoopShare(service.clock, self._work)
        self._since = self._quiet_since = service.clock.monotonic()
        self._part_since: float | None = None
        """Since when a request has arrived in part."""
        self._blocked_since = self._since
        service.clock.call_later(_TICK_S, self._tick)
        self._meet()

    # -- the connection ---------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Take bytes from the client."""
        if self._ended:
            return
        if not self._claim.grow(len(data)):
            self._refuse("the memory for requests is used up")
            return
        self._frames.feed(data)
        self._work()

    def blocked(self, is_blocked: bool) -> None:
        """Wait until the client reads its answers."""
        self._blocked = is_blocked
        self._blocked_since = self._service.clock.monotonic()
        if self._part_since is not None:
            self._part_since = self._blocked_since
        if not is_blocked:
            self._work()

    def judge_again(self, *, certificates: bool) -> bool:
        """End the connection if its caller would be refused now; return whether it ends."""
        shows_one = self._peer.certificate_uri is not None
        refused = (certificates and shows_one) or not self._steps.still_known()
        if refused and not self._ended:
            self._end()
        return refused

    def lost(self) -> None:
        """Forget what is under way; a handler's answer goes nowhere."""
        self._ended = True
        self._under_way = None
        self._claim.close()

    def _meet(self) -> None:
        """Learn what the connection itself says of the caller."""
        try:
            found = self._service.logins.of_peer(self._peer)
        except LoginRefusedError as error:
            self._refuse(str(error))
            return
        if self._peer.certificate_uri is not None or not self._service.logins.required:
            self._known(found)

    def _known(self, caller: Caller) -> None:
        self._caller = caller
        self._link.known()

    def _gives_way(self) -> None:
        self._refuse("the memory for requests is used up, and this client holds the most")

    def _tick(self) -> None:
        """Look once a second whether something takes too long."""
        if self._ended:
            return
        limits, now = self._service.limits, self._service.clock.monotonic()
        if self._caller is None and now - self._since > limits.login_s:
            self._refuse("the client has not logged in")
        elif self._blocked and now - self._blocked_since > limits.unread_s:
            self._end()
        elif self._arrives_slowly(now):
            self._refuse("a request arrived in part only")
        elif self._under_way is not None:
            if now - self._under_way.since > limits.reply_s:
                self._fail(self._under_way, KafkaCode.REQUEST_TIMED_OUT, "no answer in time")
        elif now - self._quiet_since > limits.idle_s:
            self._end()
        if not self._ended:
            self._service.clock.call_later(_TICK_S, self._tick)

    def _arrives_slowly(self, now: float) -> bool:
        """Tell whether a part of a request has waited too long for the rest."""
        waits = self._part_since is not None and not self._blocked
        return waits and now - (self._part_since or 0) > self._service.limits.request_s

    # -- requests ---------------------------------------------------------------------------------

    def _work(self) -> None:
        """Handle what has arrived, as far as that goes at this moment."""
        if self._working:
            return
        self._working = True
        rests = False
        try:
            while not self._ended and not self._waits():
                rests = self._share.spent()
                frame = None if rests else self._next_frame()
                if frame is None:
                    break
                self._handle(frame)
        except WireError as error:
            self._refuse(str(error))
        finally:
            self._working = False
        if not self._ended:
            waits = rests or self._waits()
            self._link.read_on(not waits or len(self._frames) < self._service.limits.ahead_bytes)

    def _waits(self) -> bool:
        """Tell whether the next request has to wait."""
        return self._under_way is not None or self._logging_in or self._blocked

    def _next_frame(self) -> bytes | None:
        limits = self._service.limits
        frame = self._frames.take(
            limits.stranger_bytes if self._caller is None else limits.request_bytes
        )
        now = self._service.clock.monotonic()
        if frame is None:
            if not len(self._frames):
                self._part_since = None
            elif self._part_since is None:
                self._part_since = now
            return None
        self._part_since = None
        self._quiet_since = now
        self._claim.close()
        if len(self._frames):
            self._claim.grow(len(self._frames))
        return frame

    def _handle(self, frame: bytes) -> None:
        """Give one request to its handler. Raises WireError."""
        if self._bare_login:
            self._log_in_bare(frame)
            return
        key, version, correlation = peek_request_header(frame)
        served = self._service.served.get(key)
        if served is None:
            raise WireError(f"api key {key} is not served on {self._service.listener}")
        if self._caller is None and key not in _BEFORE_LOGIN:
            raise WireError(f"{api_name(key)} came before a login")
        if not served.first <= version <= served.last:
            if key != API_VERSIONS:
                raise WireError(f"version {version} of {api_name(key)} is not served")
            self._send_versions(0, correlation, KafkaCode.UNSUPPORTED_VERSION)
            return
        header, start = decode_request_header(frame)
        fields, elements = decode_counted_request(key, version, frame, start)
        self._service.requests[api_name(key)] += 1
        if key == API_VERSIONS:
            bad = bad_software(version, fields)
            self._send_versions(
                version, correlation, KafkaCode.INVALID_REQUEST if bad else KafkaCode.NONE
            )
        elif key in _BEFORE_LOGIN:
            self._log_in(header, fields)
        else:
            assert self._caller is not None
            request = KafkaRequest(
                key,
                version,
                header.client_id,
                fields,
                self._caller,
                listener=self._service.listener,
            )
            claim = self._service.decoded.claim(self._peer.address)
            if not claim.grow(_decoded_bytes(key, len(frame), elements)):
                raise WireError("the requests that wait for their answers use up the memory")
            self._begin(_OpenRequest(request, correlation, self._service.clock.monotonic(), claim))

    def _begin(self, opened: "_OpenRequest") -> None:
        self._under_way = opened
        self._link.busy(True)

        def answer(found: Fields | bytes) -> None:
            opened.claim.close()
            if self._under_way is opened:
                self._finish(opened, found)

        try:
            self._service.handlers[opened.request.api_key](opened.request, answer)
        except KafkaFailure as error:
            opened.claim.close()
            self._fail(opened, error.code, error.message)
        except Exception as error:  # noqa: BLE001 - a defect of ours still gets its answer
            self._defect(opened, error)
            opened.claim.close()
            self._fail(opened, KafkaCode.UNKNOWN_SERVER_ERROR, "the request failed here; see log")

    def _finish(self, opened: "_OpenRequest", found: Fields | bytes) -> None:
        """Send the answer of the request under way, and go on."""
        request = opened.request
        try:
            body = (
                found
                if isinstance(found, bytes)
                else encode_response(request.api_key, request.version, found)
            )
        except Exception as error:  # noqa: BLE001 - a defect of ours still gets its answer
            self._defect(opened, error)
            if opened.failed:
                self._end()
                return
            self._fail(opened, KafkaCode.UNKNOWN_SERVER_ERROR, "the answer can't be written")
            return
        self._under_way = None
        self._send(request.api_key, request.version, opened.correlation_id, body)
        self._link.busy(False)
        self._work()

    def _fail(self, opened: "_OpenRequest", code: KafkaCode, message: str) -> None:
        if self._under_way is not opened:
            return
        opened.failed = True
        self._service.failures[code.name] += 1
        request = opened.request
        self._finish(
            opened, failure(request.api_key, request.version, request.fields, code, message)
        )

    def _defect(self, opened: "_OpenRequest", error: Exception) -> None:
        self._service.on_defect(opened.request, error)
        self._service.refusals.refused(
            FAILED, request=api_name(opened.request.api_key), error=repr(error)
        )

    def _log_in(self, header: RequestHeader, fields: Fields) -> None:
        """Answer a step of a login. A login that fails ends the connection, as in Kafka."""

        def answer(step: LoginStep) -> None:
            self._logging_in = False
            if self._ended:
                return
            body = encode_response(header.api_key, header.version, step.answer)
            self._send(header.api_key, header.version, header.correlation_id, body)
            self._bare_login = header.api_key == SASL_HANDSHAKE and header.version == 0
            self._logged_in(step)

        self._logging_in = True
        self._steps.take(header.api_key, fields, answer)

    def _log_in_bare(self, message: bytes) -> None:
        """Answer a message of SASL that has no headers. A login that fails gets no answer."""

        def answer(step: LoginStep) -> None:
            self._logging_in = False
            if self._ended:
                return
            if not step.refused:
                self._link.write(framed(step.answer["AuthBytes"]))
            self._bare_login = step.caller is None
            self._logged_in(step)

        self._logging_in = True
        self._steps.take(SASL_AUTHENTICATE, {"AuthBytes": message}, answer)

    def _logged_in(self, step: LoginStep) -> None:
        """Go on after a step of a login."""
        if step.refused:
            self._service.failures[KafkaCode(step.answer["ErrorCode"]).name] += 1
            self._refuse(step.refused)
            return
        if step.caller is not None:
            self._known(step.caller)
        self._work()

    def _send_versions(self, version: int, correlation_id: int, code: KafkaCode) -> None:
        answer = api_versions_answer(version, self._service.served, self._service.features(), code)
        body = encode_response(API_VERSIONS, version, answer)
        self._send(API_VERSIONS, version, correlation_id, body)

    def _send(self, api_key: int, version: int, correlation_id: int, body: bytes) -> None:
        self._quiet_since = self._service.clock.monotonic()
        header = encode_response_header(api_key, version, correlation_id)
        self._link.write(framed(header, body))

    def _refuse(self, why: str) -> None:
        """End the connection because of what the client sent; say so in the log."""
        if self._ended:
            return
        self._service.refusals.refused(REFUSED, address=self._peer.address, error=why)
        self._end()

    def _end(self) -> None:
        self.lost()
        self._link.close()


class _OpenRequest:
    """The request under way."""

    def __init__(
        self, request: KafkaRequest, correlation_id: int, since: float, claim: ByteClaim
    ) -> None:
        self.request = request
        self.correlation_id = correlation_id
        self.since = since
        self.claim = claim
        """Its memory, until the handler has answered; also if the connection ends before."""
        self.failed = False
        """Its answer is an error of ours already."""


def _decoded_bytes(api_key: int, frame_bytes: int, elements: int) -> int:
    """Return what a decoded request takes, about."""
    inside = frame_bytes * _ENVELOPE_BYTES if api_key == _ENVELOPE else 0
    return frame_bytes + elements * _ELEMENT_BYTES + inside
