"""The agent's core: an image that follows, a state, and a lease that runs out.

Rule: the agent serves only while a controller has answered a request that was *sent* less than
0.8 sessions ago. The controller fences us a whole session after it last *heard* from us, and it
heard from us after we sent; so we stop before anyone else may take over, whatever the network
does in between. `may_serve` reads the clock at each call: a process that was paused finds its
lease gone before it answers anyone, even if no timer has run yet. The session is the shorter of
ours and the controller's, which tells us its own with each answer.

After it was fenced, by whomever, the agent serves again only when its image has reached what the
controller had when they met again: an unfenced broker with an old image would mislead.

The core is free of I/O: requests leave through the requester, answers come back by callback,
and the host is told through `Host` and the publishers.
"""

from collections.abc import Callable
from typing import Protocol

import structlog

from broker_agent.catching_up import CatchingUp
from broker_agent.config import AgentConfig, lease_s, longest_wait_ms
from broker_agent.fetch_loop import FetchLoop
from broker_agent.image_store import ImageStore
from broker_agent.lease import Lease
from broker_agent.publishers import Publisher
from broker_agent.registration import registration_of
from broker_agent.snapshot_download import SnapshotDownload
from broker_agent.states import AgentEvent, AgentStatus, BrokerState
from broker_agent.stop_limits import StopLimits
from broker_agent.view import DiffersError, MetadataView, TooNewError, UnusableAnswerError
from metadata.image import MetadataImage
from metadata.messages.fetch import (
    MetadataFetchReply,
    MetadataFetchRequest,
    SeenState,
    WantedState,
)
from metadata.messages.versions import TOLERANT
from metadata.messages.wire import MSGPACK, encode
from metadata.uuids import uuid4_from, uuid_text
from runtime.clock import Clock, Timer
from runtime.disk.interface import Disk
from runtime.http.requests import Requester
from runtime.randomness import Random

AGENT_STARTED = "agent_started"
BROKER_REGISTERED = "broker_registered"
STATE_CHANGED = "state_changed"
SELF_FENCED = "self_fenced"
SESSION_DIFFERS = "session_differs"
HOST_FAILED = "host_failed"
SNAPSHOT_FAILED = "snapshot_failed"

_REGISTRATION_PATIENCE = (4, 8, 16, 32)
"""In answer slacks, by attempt: a registration waits for a commit, and repeating it costs one."""
_PACE_S = 0.1


class Host(Protocol):
    """The process that the agent lives in."""

    def on_state(self, state: BrokerState, reason: str) -> None:
        """The state, or the right to serve, changed; `AgentCore.may_serve` says which it is."""

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
        self._host = host
        self._log = log.bind(broker_id=config.broker_id)
        self._incarnation_id = uuid4_from(random.getrandbits(122))
        self._status = AgentStatus()
        self._session_ms = config.session_ms
        self._lease = Lease(clock, lease_s(config.session_ms), self._on_lease_expired)
        self._loop = FetchLoop(config, clock, random, requester, self, self._log)
        self._images = ImageStore(config, clock, disk, self._log)
        self._view = MetadataView(config.cluster_id, publishers, self._log)
        self._catching_up = CatchingUp(
            config,
            clock,
            self._view,
            self._images,
            SnapshotDownload(
                config.cluster_id,
                uuid_text(self._incarnation_id),
                clock,
                disk,
                requester,
                self._log,
            ),
            self._on_loaded,
            self._log,
        )
        self._stop_limits = StopLimits(config, clock, self._on_stop_limit)
        self.reason = "not registered yet"
        self.broker_epoch = -1
        self.high_watermark = -1
        self.self_fencings = 0
        self._host_ready = True
        self._asked = WantedState.FENCED
        self._registrations = 0
        self._timer: Timer | None = None

    # What the host asks and does.

    @property
    def state(self) -> BrokerState:
        """Where the broker stands."""
        return self._status.state

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
    def fetches(self) -> FetchLoop:
        """How asking goes."""
        return self._loop

    @property
    def catching_up(self) -> CatchingUp:
        """How following goes."""
        return self._catching_up

    @property
    def controller_url(self) -> str:
        """The controller that is asked now: the active one, as far as we know."""
        return self._loop.url

    @property
    def lease_length_s(self) -> float:
        """How long an answered request keeps the broker in service."""
        return self._lease.length_s

    def may_serve(self) -> bool:
        """Whether an answer may be given to a client at this moment; ask before each."""
        if self._status.serving and self._lease.expired():
            self._on_lease_expired()
        return self._status.serving

    def freshness_s(self) -> float:
        """Seconds since the sending of the last request that was answered; inf: none yet."""
        return self._lease.age_s()

    def set_host_ready(self, *, ready: bool) -> None:
        """Ask to be online only while the host says so; ready from the start by default."""
        if ready == self._host_ready:
            return
        self._host_ready = ready
        if not ready and self.state in {BrokerState.ONLINE, BrokerState.STOPPING}:
            self._to(AgentEvent.HOST_UNREADY, "the host is not ready")
        self._say_now()

    def start(self) -> None:
        """Load the image from disk and begin to fetch.

        Raises OSError, FolderInUseError, WrongFolderError.
        """
        saved = self._images.open()
        if saved is not None:
            self._view.replace(saved)
        self._log.info(
            AGENT_STARTED,
            incarnation=uuid_text(self._incarnation_id),
            saved_offset=self._view.fetched_offset,
        )
        self._wake_in(self._config.registration_limit_ms, self._on_registration_limit)
        self._loop.send()

    def stop(self) -> None:
        """Begin a controlled shutdown; `Host.on_gone` follows."""
        if self.state is BrokerState.GONE:
            return
        before = self.state
        self._to(AgentEvent.STOP_ASKED, "asked to stop")
        if before is BrokerState.OFFLINE:
            self._leave("stopped before it was registered", orderly=True)
        elif before is not BrokerState.STOPPING:
            self._stop_limits.begin()
            self._say_now()

    def abandon(self) -> None:
        """Stop at once, without telling anyone."""
        self._status.end()
        self._end_activity()
        self._images.close()

    # What the loop of fetches asks.

    def compose(self, max_wait_ms: int, version: int) -> bytes:
        """Write the next fetch, in a version that the controller reads."""
        self._asked = self._wanted()
        registering = self.broker_epoch < 0
        self._registrations += registering
        # While a snapshot is on its way, fetches are mere heartbeats.
        following = self._catching_up.pause_s() == 0
        return encode(
            MetadataFetchRequest(
                cluster_id=self._config.cluster_id,
                broker_id=self._config.broker_id,
                incarnation_id=uuid_text(self._incarnation_id),
                broker_epoch=self.broker_epoch,
                registration=registration_of(self._config) if registering else None,
                fetched_offset=self._view.fetched_offset,
                fetched_epoch=self._view.fetched_epoch,
                applied_offset=self._view.applied_offset,
                wanted_state=self._asked,
                max_bytes=self._config.fetch_bytes_max if following else 0,
                max_wait_ms=max_wait_ms,
                software=self._config.software if version >= TOLERANT else None,
            ),
            MSGPACK,
        )

    def held_ms(self) -> int:
        """At most a heartbeat, and never so long that the lease ends in ordinary life."""
        if self._catching_up.pause_s() > 0:
            return 0
        slack_ms = self._config.answer_slack_ms
        longest = longest_wait_ms(self._session_ms, slack_ms)
        # The session may just have become shorter, with an old renewal in force.
        left = int((self._lease.length_s - self._lease.age_s()) * 1000) - slack_ms
        return max(10, min(self._config.heartbeat_ms, longest, left))

    def patience_ms(self) -> int:
        """Everything is answered at once, but a registration waits for a commit."""
        if self.broker_epoch >= 0:
            return self._config.answer_slack_ms
        attempt = min(self._registrations, len(_REGISTRATION_PATIENCE) - 1)
        return self._config.answer_slack_ms * _REGISTRATION_PATIENCE[attempt]

    def on_expelled(self, why: str) -> None:
        """A stale epoch, or a foreign cluster."""
        self._expel(why)

    def on_reply(self, reply: MetadataFetchReply, sent_at: float) -> None:
        """Take what the leader says: contact, epoch, content, state; then ask again."""
        registering = self.broker_epoch < 0
        if reply.broker_epoch < 0 or not (registering or reply.broker_epoch == self.broker_epoch):
            self._loop.fail(f"answered for broker epoch {reply.broker_epoch}, which is not ours")
            return
        self._follow_session(reply.session_timeout_ms)
        self._lease.renew(sent_at)
        self._stop_limits.heard()
        self.high_watermark = max(self.high_watermark, reply.high_watermark)
        if registering:
            self.broker_epoch = reply.broker_epoch
            self._log.info(BROKER_REGISTERED, broker_epoch=reply.broker_epoch)
            self._cancel_timer()
            self._to(AgentEvent.REGISTERED, f"registered with broker epoch {reply.broker_epoch}")
        if not self._lease.expired():
            self._catching_up.meet(max(reply.high_watermark, self.broker_epoch + 1))
        self._follow(reply, sent_at)

    # Answers.

    def _follow_session(self, told_ms: int) -> None:
        session_ms = self._config.session_ms
        if told_ms > 0:
            session_ms = min(session_ms, told_ms)
        if session_ms != self._session_ms:
            self._session_ms = session_ms
            self._log.warning(
                SESSION_DIFFERS, ours_ms=self._config.session_ms, controllers_ms=told_ms
            )
            self._lease.set_length(lease_s(session_ms))

    def _follow(self, reply: MetadataFetchReply, sent_at: float) -> None:
        """Follow the log, then what is said of us, whatever the log was worth; then go on."""
        try:
            self._catching_up.follow(reply, self._loop.url, self.broker_epoch)
        except TooNewError as error:
            self._expel(f"this software is too old for the cluster: {error}")
        except UnusableAnswerError as error:
            self._follow_state(reply)
            self._loop.fail(f"{self._loop.url}: {error}")
        except DiffersError as error:
            self._to(AgentEvent.DIFFERS, f"stopped serving: {error}; all is to be fetched anew")
            self._follow_state(reply)
            self._loop.send_later(_PACE_S)
        else:
            self._follow_state(reply)
            self._go_on(reply, sent_at)

    def _follow_state(self, reply: MetadataFetchReply) -> None:
        if self.state is BrokerState.GONE:
            return  # a publisher, or the host, ended it
        if self.state is BrokerState.STOPPING and reply.may_stop:
            self._to(AgentEvent.TOLD_STOP, "the leaders have moved")
            self._leave("stopped: the leaders have moved, and every broker knows", orderly=True)
        elif reply.state is SeenState.FENCED:
            self._to(AgentEvent.TOLD_FENCED, "the controller says fenced")
        elif reply.state is SeenState.ONLINE and self._may_go_online():
            self._to(AgentEvent.TOLD_ONLINE, "the controller says online")

    def _may_go_online(self) -> bool:
        return (
            self.state in {BrokerState.FENCED, BrokerState.ONLINE}
            and self._asked is WantedState.ONLINE
            and self._catching_up.caught_up
            and not self._lease.expired()
        )

    def _wanted(self) -> WantedState:
        if self.state is BrokerState.STOPPING:
            return WantedState.STOPPING
        registered = 0 <= self.broker_epoch < self._view.applied_offset
        if self._host_ready and registered and not self._catching_up.differs:
            return WantedState.ONLINE
        return WantedState.FENCED

    def _go_on(self, reply: MetadataFetchReply, sent_at: float) -> None:
        """Send the next fetch: at once, or in a while when this one brought nothing too soon."""
        pause_s = self._catching_up.pause_s()
        if pause_s > 0:
            self._loop.send_later(pause_s)
            return
        took_s = self._clock.monotonic() - sent_at
        news = reply.batches or self._wanted() is not self._asked or took_s >= _PACE_S
        if news or self._loop.settling:
            self._loop.send()
        else:
            self._loop.send_later(_PACE_S - took_s)

    def _on_loaded(self, problem: str) -> None:
        """A snapshot replaced the image, or could not be had: ask for what comes behind it."""
        if self.state is BrokerState.GONE:
            return
        if problem:
            self._log.warning(SNAPSHOT_FAILED, why=problem)
            self._loop.send_later(self._catching_up.pause_s())
        else:
            self._loop.send_now()

    def _say_now(self) -> None:
        """Tell the controller what we want, once it knows us."""
        if self.broker_epoch >= 0 and self.state is not BrokerState.GONE:
            self._loop.send_now()

    # Time.

    def _on_lease_expired(self) -> None:
        self._catching_up.meet_again()
        if self._status.serving:
            age_s = self._lease.age_s()
            self.self_fencings += 1
            self._log.warning(SELF_FENCED, age_s=round(age_s, 3), why=self._loop.last_problem)
            why = f"fenced itself: nothing sent in the last {age_s:.1f} s was answered"
            self._to(AgentEvent.LEASE_EXPIRED, why)

    def _on_registration_limit(self) -> None:
        if self.broker_epoch < 0:
            limit_s = self._config.registration_limit_ms / 1000
            self._expel(f"not registered within {limit_s:g} s: {self._loop.last_problem}")

    def _on_stop_limit(self, why: str) -> None:
        self._to(AgentEvent.STOP_EXPIRED, why)
        self._leave(why, orderly=False)

    def _wake_in(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self._clock.call_later(delay_ms / 1000, callback)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # State.

    def _to(self, event: AgentEvent, reason: str) -> None:
        before = self.state
        if not self._status.meet(event):
            return
        if self.state is BrokerState.FENCED:
            self._catching_up.meet_again()
        self.reason = reason
        self._log.info(
            STATE_CHANGED,
            before=before.value,
            after=self.state.value,
            serving=self._status.serving,
            reason=reason,
        )
        self._tell_host(lambda: self._host.on_state(self.state, reason))

    def _expel(self, why: str) -> None:
        self._to(AgentEvent.EXPELLED, why)
        self._leave(why, orderly=False)

    def _leave(self, reason: str, *, orderly: bool) -> None:
        """End; an orderly end saves the image first, unless that takes too long."""
        self._end_activity()
        left = False

        def leave() -> None:
            nonlocal left
            if not left:
                left = True
                self._cancel_timer()
                self._images.close()
                self._tell_host(lambda: self._host.on_gone(reason, orderly=orderly))

        if not orderly or self._catching_up.stuck:
            leave()
            return
        self._wake_in(self._config.save_limit_ms, leave)
        self._images.save_at_end(self._view.newest, leave)

    def _end_activity(self) -> None:
        self._cancel_timer()
        self._stop_limits.end()
        self._loop.end()
        self._catching_up.end()
        self._lease.end()

    def _tell_host(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # noqa: BLE001 - a host's mistake must not end our heartbeats
            self._log.exception(HOST_FAILED)
