"""One connection: its frames, its caller, and one request at a time.

Rules:

- Requests of a connection are handled one after another, and answered in that order, as in Kafka.
- What can't be read, and what this listener does not serve, ends the connection, as in Kafka. The
  log gets one line, with a limit on their number (`runtime.sockets.refusals`). A version of
  ApiVersions that is too new is answered.
- A request that reached its handler is answered: by the handler, or by an error if the handler
  fails or takes too long. Later answers of the handler are dropped.
- While an answer is not read by the client, or a request is under way, nothing more is read.
- A large request is decoded in steps, and its answer is encoded and sent in steps. Many short
  requests that come together, of whatever connections, take turns with the rest of the loop.
"""

from typing import Final

from kafka_listener.asking.failures import failure
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.letting_go import let_go
from kafka_listener.asking.request import Fields, KafkaFailure, Response
from kafka_listener.serving.answering import Answering, AnswerTo
from kafka_listener.serving.api_versions import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    api_versions_answer,
    bad_software,
)
from kafka_listener.serving.frames import FrameBuffer, framed
from kafka_listener.serving.login_refused import LoginRefusedError
from kafka_listener.serving.login_steps import LoginStep, LoginSteps
from kafka_listener.serving.open_request import OpenRequest
from kafka_listener.serving.request_decoding import Decoded, RequestDecoding
from kafka_listener.serving.service import FAILED, REFUSED, KafkaService
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.messages import (
    API_VERSIONS,
    RequestHeader,
    api_name,
    decode_request_header,
    encode_response,
    encode_response_header,
    peek_request_header,
)
from runtime.http.requests import Caller
from runtime.sessions.interface import ByteLink, PeerOnWire
from runtime.sockets.attempts import Attempt

_TICK_S: Final = 1.0
_LAST_WORD_S: Final = 0.1
"""So long a connection stays open behind the answer to a login that failed, as Kafka's do by
default. kafka-python drops an answer whose connection has ended when it comes to read it, and then
tries again and again without a word to its user."""
_BEFORE_LOGIN: Final = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE})


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
        self._requests = RequestDecoding(service.clock, service.decoded, peer.address)
        self._answering = Answering(service.clock, link)
        self._under_way: OpenRequest | None = None
        self._decoding = False
        """A request is being decoded."""
        self._logging_in = False
        """A step of the login is under way."""
        self._bare_login = False
        """The next frames are messages of SASL without headers: SaslHandshake had version 0."""
        self._blocked = False
        self._ended = False
        self._working = False
        self._rests = False
        """Requests wait for a later pass of the loop."""
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
        self._answering.blocked(is_blocked)
        if not is_blocked:
            self._work()

    def judge_again(self, *, certificates: bool) -> bool:
        """End the connection if its caller would be refused now; return whether it ends."""
        shows_one = self._peer.certificate is not None
        refused = (certificates and shows_one) or not self._steps.still_known()
        if refused and not self._ended:
            self._end()
        return refused

    def lost(self) -> None:
        """Forget what is under way; a handler's answer goes nowhere."""
        self._ended = True
        opened, self._under_way = self._under_way, None
        self._answering.stop()
        if opened is not None:
            opened.let_go_if_handled()
        self._claim.close()

    def _meet(self) -> None:
        """Learn what the connection itself says of the caller."""
        try:
            found = self._service.logins.of_peer(self._peer)
        except LoginRefusedError as error:
            self._note_refused("login", "UNAUTHENTICATED", str(error))
            self._refuse(str(error))
            return
        if self._peer.certificate is not None or not self._service.logins.required:
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
        if self._working or self._rests:
            return
        self._working = True
        try:
            while not self._ended and not self._waits():
                self._rests = self._service.passes.spent()
                frame = None if self._rests else self._next_frame()
                if frame is None:
                    break
                self._handle(frame)
        except WireError as error:
            self._refuse(str(error))
        finally:
            self._working = False
        if self._rests:
            self._service.passes.wait(self._rested)
        if not self._ended:
            waits = self._rests or self._waits()
            self._link.read_on(not waits or len(self._frames) < self._service.limits.ahead_bytes)

    def _rested(self) -> None:
        self._rests = False
        self._work()

    def _waits(self) -> bool:
        """Tell whether the next request has to wait."""
        return self._under_way is not None or self._decoding or self._logging_in or self._blocked

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
            why = f"{api_name(key)} came before a login"
            self._note_refused(api_name(key), "UNAUTHENTICATED", "a login")
            raise WireError(why)
        if not served.first <= version <= served.last:
            if key != API_VERSIONS:
                raise WireError(f"version {version} of {api_name(key)} is not served")
            self._send_versions(0, correlation, KafkaCode.UNSUPPORTED_VERSION)
            return
        header, start = decode_request_header(frame)
        self._decoding = True
        self._requests.begin(header, frame, start, self._decoded)
        if self._decoding:
            self._link.busy(True)

    def _decoded(self, found: Decoded | WireError) -> None:
        """Take a request that is decoded. If the connection has ended, it is let go."""
        self._decoding = False
        if isinstance(found, WireError):
            self._refuse(str(found))
        elif self._ended:
            found.claim.close()
            let_go(self._service.clock, found.fields, found.elements)
        else:
            self._take(found)
        self._work()

    def _take(self, found: Decoded) -> None:
        """Give a request to its handler, or answer what the session answers itself."""
        header, key, version = found.header, found.header.api_key, found.header.version
        self._service.requests[api_name(key)] += 1
        if key in _BEFORE_LOGIN:
            found.claim.close()
            if key != API_VERSIONS:
                self._log_in(header, found.fields)
                return
            bad = bad_software(version, found.fields)
            code = KafkaCode.INVALID_REQUEST if bad else KafkaCode.NONE
            self._send_versions(version, header.correlation_id, code)
            return
        assert self._caller is not None
        request = found.request(self._caller, self._service.listener)
        self._begin(OpenRequest(request, header.correlation_id, self._service.clock, found.claim))

    def _begin(self, opened: OpenRequest) -> None:
        self._under_way = opened
        self._link.busy(True)

        def answer(found: Response) -> None:
            opened.handled = True
            if self._under_way is not opened:
                opened.let_go_if_handled()
            elif not opened.answered:
                self._finish(opened, found)

        try:
            self._service.handlers[opened.request.api_key](opened.request, answer)
        except KafkaFailure as error:
            opened.handled = True
            self._fail(opened, error.code, error.message)
        except Exception as error:  # noqa: BLE001 - a defect of ours still gets its answer
            self._defect(opened, error)
            opened.handled = True
            self._fail(opened, KafkaCode.UNKNOWN_SERVER_ERROR, "the request failed here; see log")

    def _finish(self, opened: OpenRequest, found: Response) -> None:
        """Send the answer of the request under way, and go on."""
        request = opened.request
        opened.answered = True

        def done(problem: Exception | None) -> None:
            if self._under_way is not opened:
                return
            if problem is None:
                self._under_way = None
                self._quiet_since = self._service.clock.monotonic()
                self._link.busy(False)
                # A handler may have answered after its time, while our error was on its way.
                opened.let_go_if_handled()
                self._work()
                return
            self._defect(opened, problem)
            if opened.failed:
                self._end()
                return
            opened.answered = False
            self._fail(opened, KafkaCode.UNKNOWN_SERVER_ERROR, "the answer can't be written")

        to = AnswerTo(request.api_key, request.version, opened.correlation_id)
        self._answering.begin(to, found, opened.let_go_if_handled, done)

    def _fail(self, opened: OpenRequest, code: KafkaCode, message: str) -> None:
        if self._under_way is not opened or opened.answered:
            return
        opened.failed = True
        self._service.failures[code.name] += 1
        request = opened.request
        self._finish(
            opened, failure(request.api_key, request.version, request.fields, code, message)
        )

    def _defect(self, opened: OpenRequest, error: Exception) -> None:
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
            code = KafkaCode(step.answer["ErrorCode"]).name
            self._service.failures[code] += 1
            self._note_refused("login", code, step.refused, step.user)
            self._refuse(step.refused, after_s=_LAST_WORD_S)
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

    def _note_refused(self, operation: str, code: str, why: str, user: str = "") -> None:
        """Tell the trail of an attempt without a login. `user`: the name that the client gave."""
        resource = f"user:{user}" if user else ""
        address = self._peer.address
        self._service.refusals.attempted(Attempt("", "", operation, resource, address, code, why))

    def _refuse(self, why: str, after_s: float = 0.0) -> None:
        """End the connection because of what the client sent; say so in the log."""
        if self._ended:
            return
        self._service.refusals.refused(REFUSED, address=self._peer.address, error=why)
        if after_s:
            self.lost()
            self._service.clock.call_later(after_s, self._link.close)
        else:
            self._end()

    def _end(self) -> None:
        self.lost()
        self._link.close()
