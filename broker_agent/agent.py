"""The agent's core: one fetch in flight, an image that follows, a lease that runs out.

Rule: the agent serves only while a controller has answered a request that was *sent* less than
0.8 sessions ago. The controller fences us a whole session after it last *heard* from us, and it
heard from us after we sent; so we stop before anyone else may take over, whatever the network
does in between. `may_serve` reads the clock at each call: a process that was paused finds its
lease gone before it answers anyone, even if no timer has run yet.

The core is free of I/O: requests leave through the requester, answers come back by callback,
and the host is told through `Host` and the publishers.
"""

from typing import Protocol

import structlog

from broker_agent.config import AgentConfig
from broker_agent.image_store import BadImageError, ImageStore
from broker_agent.lease import Lease
from broker_agent.publishers import Publisher
from broker_agent.snapshot_download import SnapshotDownload
from broker_agent.states import BrokerState, Event, next_state
from broker_agent.target import Target
from broker_agent.view import HistoryDiffersError, MetadataView
from metadata.errors import ErrorCode, QuorateError
from metadata.image import MetadataImage
from metadata.messages.fetch import (
    Endpoint,
    MetadataFetchReply,
    MetadataFetchRequest,
    Registration,
    SeenState,
    SupportedFeature,
    WantedState,
)
from metadata.messages.wire import MSGPACK, decode_fetch_reply, encode
from metadata.uuids import uuid4_from, uuid_text
from runtime.clock import Clock, Timer
from runtime.disk import Disk
from runtime.randomness import Random
from runtime.requests import PendingRequest, Reply, Request, Requester, Unreachable
from snapshots.checkpoint import CheckpointId
from snapshots.errors import CheckpointError

FETCH_PATH = "/v1/metadata/fetch"
_HEADERS = {"content-type": MSGPACK, "accept": MSGPACK}
_REGISTRATION_RETRY_S = 0.1

_EXPELLING = frozenset({ErrorCode.STALE_BROKER_EPOCH, ErrorCode.INCONSISTENT_CLUSTER_ID})
_REGISTRATION_REFUSED = frozenset(
    {
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
    }
)


class Host(Protocol):
    """The process that the agent lives in."""

    def on_state(self, state: BrokerState, reason: str) -> None:
        """The state changed; serve clients only while it is ONLINE."""

    def on_gone(self, reason: str, *, orderly: bool) -> None:
        """The end: leave the process. `orderly` when we stopped as we were asked to."""


class AgentCore:
    """One broker's agent."""

    def __init__(
        self,
        config: AgentConfig,
        *,
        clock: Clock,
        random: Random,
        disk: Disk,
        requester: Requester,
        host: Host,
        publishers: tuple[Publisher, ...] = (),
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._config = config
        self._clock = clock
        self._requester = requester
        self._host = host
        self._log = log.bind(broker_id=config.broker_id)
        self._target = Target(config.controllers, random, config.heartbeat_ms / 2000)
        self._lease = Lease(clock, config.lease_s, self._on_lease_expired)
        self._view = MetadataView(config.cluster_id, publishers, self._log)
        self._images = ImageStore(config, clock, disk, self._log)
        self._download = SnapshotDownload(config.cluster_id, clock, disk, requester, self._log)
        self._incarnation_id = uuid4_from(random.getrandbits(122))
        self.state = BrokerState.OFFLINE
        self.reason = "not registered yet"
        self.broker_epoch = -1
        self._host_ready = True
        self._in_flight: PendingRequest | None = None
        self._timer: Timer | None = None
        self._settled_url: str | None = None
        self._started_at = 0.0
        self._stop_timer: Timer | None = None
        self._last_refusal = "no controller has answered"

    # What the host asks and does.

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        return self._view.image

    @property
    def config(self) -> AgentConfig:
        """The configuration."""
        return self._config

    @property
    def view(self) -> MetadataView:
        """The image with its place in the log."""
        return self._view

    @property
    def controller_url(self) -> str:
        """The controller that is asked now: the active one, as far as we know."""
        return self._target.url

    def may_serve(self) -> bool:
        """Whether an answer may be given to a client at this moment; ask before each."""
        if self.state is BrokerState.ONLINE and self._lease.expired():
            self._on_lease_expired()
        return (
            self.state in {BrokerState.ONLINE, BrokerState.STOPPING} and not self._lease.expired()
        )

    def freshness_s(self) -> float:
        """Seconds since the sending of the last request that was answered; inf: none yet."""
        return self._lease.age_s()

    def set_host_ready(self, *, ready: bool) -> None:
        """Ask to be online only while the host says so; ready from the start by default."""
        self._host_ready = ready
        self._send_now()

    def start(self) -> None:
        """Load the image from disk and begin to fetch. Raises OSError, FolderInUseError."""
        self._started_at = self._clock.monotonic()
        saved = self._images.open()
        if saved is not None:
            self._view.replace(saved.image, saved.mark)
        self._log.info("agent_started", incarnation=uuid_text(self._incarnation_id))
        self._send()

    def stop(self) -> None:
        """Begin a controlled shutdown; `Host.on_gone` follows."""
        if self.state is BrokerState.GONE:
            return
        was_offline = self.state is BrokerState.OFFLINE
        self._to(Event.STOP_ASKED, "asked to stop")
        if was_offline:
            self._leave("stopped before it was registered", orderly=True)
            return
        if self._stop_timer is None:
            self._stop_timer = self._clock.call_later(
                self._config.stop_limit_ms / 1000, self._on_stop_limit
            )
        self._send_now()

    def abandon(self) -> None:
        """Stop at once, without telling anyone."""
        self._end_activity()
        self._images.close()

    def _end_activity(self) -> None:
        for timer in (self._timer, self._stop_timer):
            if timer is not None:
                timer.cancel()
        if self._in_flight is not None:
            self._in_flight.abandon()
        self._download.abandon()
        self._lease.end()
        self.state = BrokerState.GONE

    # The one request in flight.

    def _send_now(self) -> None:
        """Send what we want now, instead of what is in flight."""
        if self.state is BrokerState.GONE or self._download.active:
            return
        if self._in_flight is not None:
            self._in_flight.abandon()
            self._in_flight = None
        self._settled_url = None
        self._send()

    def _send_later(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(delay_s, self._send)

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.state is BrokerState.GONE or self._in_flight is not None or self._download.active:
            return
        url = self._target.url
        max_wait_ms = self._config.heartbeat_ms if url == self._settled_url else 0
        sent_at = self._clock.monotonic()
        request = Request("POST", FETCH_PATH, self._request_body(max_wait_ms), headers=_HEADERS)
        self._in_flight = self._requester.request(
            url,
            request,
            lambda answer: self._on_answer(url, sent_at, answer),
            (max_wait_ms + self._answer_limit_ms()) / 1000,
        )

    def _answer_limit_ms(self) -> int:
        # A registration's answer waits for a commit; everything else is answered at once.
        return self._config.answer_slack_ms * (4 if self.broker_epoch < 0 else 1)

    def _request_body(self, max_wait_ms: int) -> bytes:
        return encode(
            MetadataFetchRequest(
                cluster_id=self._config.cluster_id,
                broker_id=self._config.broker_id,
                incarnation_id=uuid_text(self._incarnation_id),
                broker_epoch=self.broker_epoch,
                registration=self._registration() if self.broker_epoch < 0 else None,
                fetched_offset=self._view.fetched_offset,
                fetched_epoch=self._view.fetched_epoch,
                applied_offset=self._view.fetched_offset,
                wanted_state=self._wanted(),
                max_bytes=self._config.fetch_bytes_max,
                max_wait_ms=max_wait_ms,
            ),
            MSGPACK,
        )

    def _registration(self) -> Registration:
        config = self._config
        return Registration(
            endpoints=tuple(
                Endpoint(
                    name=point.name,
                    host=point.host,
                    port=point.port,
                    security_protocol=point.security_protocol,
                )
                for point in config.endpoints
            ),
            features=tuple(
                SupportedFeature(
                    name=feature.name,
                    min_supported_version=feature.min,
                    max_supported_version=feature.max,
                )
                for feature in config.features
            ),
            rack=config.rack,
            log_dirs=tuple(uuid_text(directory) for directory in config.log_dirs),
        )

    def _wanted(self) -> WantedState:
        if self.state is BrokerState.STOPPING:
            return WantedState.STOPPING
        if self._host_ready and self.caught_up():
            return WantedState.ONLINE
        return WantedState.FENCED

    def caught_up(self) -> bool:
        """Whether our image holds our own registration (KAFKA-13955: not the log's end)."""
        return 0 <= self.broker_epoch < self._view.fetched_offset

    # Answers.

    def _on_answer(self, url: str, sent_at: float, answer: Reply | Unreachable) -> None:
        self._in_flight = None
        if isinstance(answer, Unreachable):
            self._failed(f"{url} does not answer: {answer.reason}")
            return
        try:
            reply = decode_fetch_reply(
                answer.status, answer.body, answer.headers.get("content-type", MSGPACK)
            )
        except QuorateError as error:
            self._failed(f"{url} answered what can't be read: {error}")
            return
        if reply.error is not None:
            self._on_error(url, reply)
        elif reply.leader_epoch < self._target.epoch:
            self._failed(f"{url} answered for epoch {reply.leader_epoch}, which is over")
        else:
            self._on_reply(url, sent_at, reply)

    def _failed(self, why: str) -> None:
        self._settled_url = None
        self._last_refusal = why
        self._log.debug("fetch_failed", why=why)
        self._send_later(self._target.failed())
        self._check_registration_limit()

    def _on_error(self, url: str, reply: MetadataFetchReply) -> None:
        error = reply.error
        assert error is not None
        code = error.known_code()
        why = f"{url}: {error.code}: {error.message}"
        if code in _EXPELLING:
            self._to(Event.EXPELLED, why)
            self._leave(why, orderly=False)
            return
        self._last_refusal = why
        self._settled_url = None
        leader = error.leader_url or reply.leader_url
        epoch = max(error.leader_epoch, reply.leader_epoch)
        if code is ErrorCode.NOT_CONTROLLER and self._target.hint(leader, epoch):
            self._send_later(0.0)
        elif code in _REGISTRATION_REFUSED:
            self._log.warning("registration_refused", why=why)
            self._send_later(_REGISTRATION_RETRY_S)
        else:
            self._log.debug("fetch_failed", why=why)
            self._send_later(self._target.failed())
        self._check_registration_limit()

    def _check_registration_limit(self) -> None:
        if self.broker_epoch >= 0 or self.state is BrokerState.GONE:
            return
        waited = self._clock.monotonic() - self._started_at
        if waited * 1000 >= self._config.registration_limit_ms:
            why = f"not registered within {waited:.0f} s: {self._last_refusal}"
            self._to(Event.EXPELLED, why)
            self._leave(why, orderly=False)

    def _on_reply(self, url: str, sent_at: float, reply: MetadataFetchReply) -> None:
        self._target.answered(reply.leader_epoch)
        self._settled_url = url
        self._lease.renew(sent_at)
        if self.broker_epoch < 0 and reply.broker_epoch >= 0:
            self.broker_epoch = reply.broker_epoch
            self._log.info("broker_registered", broker_epoch=reply.broker_epoch)
            self._to(Event.REGISTERED, f"registered with broker epoch {reply.broker_epoch}")
        try:
            self._follow(reply)
        except HistoryDiffersError as error:
            self._log.error("history_differs", why=str(error))
            self._failed(f"{url}: {error}")
            return
        self._follow_state(reply)
        if self.state is not BrokerState.GONE:
            self._send()

    def _follow(self, reply: MetadataFetchReply) -> None:
        if reply.diverging is not None:
            self._log.warning("history_diverged", end_offset=reply.diverging.end_offset)
            self._view.forget()
        elif reply.snapshot is not None:
            self._download.begin(
                self._target.url,
                reply.snapshot,
                (self._config.broker_id, self.broker_epoch),
                self._lease.renew,
                self._on_snapshot,
            )
        elif reply.batches:
            self._view.apply(reply.batches)
            self._images.save_if_due(self._view)
        if reply.state_hash is not None:
            self._view.compare(reply.state_hash)

    def _on_snapshot(self, checkpoint: CheckpointId | None, problem: str) -> None:
        if self.state is BrokerState.GONE:
            return
        if checkpoint is None:
            self._failed(f"the snapshot could not be fetched: {problem}")
            return
        try:
            loaded = self._images.adopt(checkpoint)
        except (BadImageError, CheckpointError, OSError) as error:
            self._failed(f"the snapshot can't be used: {error}")
            return
        self._view.replace(loaded.image, loaded.mark)
        self._send()

    def _follow_state(self, reply: MetadataFetchReply) -> None:
        if reply.may_stop and self.state is BrokerState.STOPPING:
            self._to(Event.TOLD_STOP, "the leaders have moved")
            self._leave("stopped: the leaders have moved, and every broker knows", orderly=True)
        elif reply.state is SeenState.ONLINE:
            if self.state in {BrokerState.FENCED, BrokerState.ONLINE}:
                self._to(Event.TOLD_ONLINE, "the controller says online")
        elif reply.state is SeenState.FENCED:
            self._to(Event.TOLD_FENCED, "the controller says fenced")

    # Time.

    def _on_lease_expired(self) -> None:
        if self.state is BrokerState.ONLINE:
            age = self._lease.age_s()
            self._log.warning("self_fenced", age_s=round(age, 3), why=self._last_refusal)
            self._to(
                Event.LEASE_EXPIRED,
                f"fenced itself: nothing sent in the last {age:.1f} s was answered",
            )

    def _on_stop_limit(self) -> None:
        if self.state is BrokerState.STOPPING:
            self._to(Event.STOP_EXPIRED, "its own limit for stopping has passed")
            self._leave("stopped at its own limit; leaders may not have moved", orderly=False)

    # State.

    def _to(self, event: Event, reason: str) -> None:
        before = self.state
        self.state = next_state(before, event)
        if self.state is before:
            return
        self.reason = reason
        self._log.info("state_changed", before=before.value, after=self.state.value, reason=reason)
        self._host.on_state(self.state, reason)

    def _leave(self, reason: str, *, orderly: bool) -> None:
        self._end_activity()
        if not orderly:
            self._images.close()
            self._host.on_gone(reason, orderly=False)
            return

        def saved() -> None:
            self._images.close()
            self._host.on_gone(reason, orderly=True)

        self._images.save(self._view, saved)
