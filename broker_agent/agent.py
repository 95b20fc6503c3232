"""The agent's core: it holds the image, the broker's state and the lease.

Rule: the agent serves only while a controller has answered a request that was *sent* less than
0.8 sessions ago. The controller fences us a whole session after it last *heard* from us, and it
heard from us after we sent; so we stop before anyone else may take over, whatever the network
does in between. `may_serve` reads the clock at each call: a process that was paused finds its
lease gone before it answers anyone, even if no timer has run yet. The session is the shorter of
ours and the controller's, which each answer of the controller states.

After the broker was fenced, by itself or by the controller, it serves again only when its image has
reached the offset that the controller had at the first answer after that. A broker that serves with
an older image would mislead its clients.

The core does no I/O: it sends requests through the requester, gets answers by callback, and calls
the host through `Host` and the publishers.
"""

from collections.abc import Callable, Collection
from typing import Protocol

import structlog

from broker_agent.catching_up import CatchingUp
from broker_agent.config import AgentConfig, lease_s, longest_wait_ms
from broker_agent.fetch_loop import FetchLoop
from broker_agent.image_store import ImageStore
from broker_agent.lease import Lease
from broker_agent.publishers import Publisher
from broker_agent.registration import LogDirectories, registration_of
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
"""How long the agent waits for the answer to a registration: multiples of `answer_slack_ms`, by
attempt. The controller answers after a commit, and each repetition costs another commit."""
_PACE_S = 0.1
"""The shortest time between two fetches that bring nothing."""


class Host(Protocol):
    """The process in which the agent runs. The agent calls these methods."""

    def on_state(self, state: BrokerState, reason: str) -> None:
        """The state or the right to serve changed; ask `AgentCore.may_serve` for the right."""

    def on_gone(self, reason: str, *, orderly: bool) -> None:
        """The agent has ended: end the process.

        `orderly` is true after a shutdown that the host asked for and that was completed.
        """


class AgentCore:
    """One broker's agent, without I/O."""

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
        self._directories = LogDirectories()
        self._host_ready = True
        self._asked = WantedState.FENCED
        self._registrations = 0
        self._timer: Timer | None = None

    # For the host.

    @property
    def state(self) -> BrokerState:
        """The broker's state."""
        return self._status.state

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        return self._view.image

    @property
    def config(self) -> AgentConfig:
        """The configuration, as it was given."""
        return self._config

    @property
    def view(self) -> MetadataView:
        """The image and its offset in the log."""
        return self._view

    @property
    def fetches(self) -> FetchLoop:
        """The loop that sends fetches; it has their counters and the last problem."""
        return self._loop

    @property
    def catching_up(self) -> CatchingUp:
        """The part that applies what fetches bring; it says whether the image has caught up."""
        return self._catching_up

    @property
    def incarnation(self) -> str:
        """The id of this process, 22 characters."""
        return uuid_text(self._incarnation_id)

    @property
    def controller_url(self) -> str:
        """The URL of the controller that gets the next fetch: the active one, as far as known."""
        return self._loop.url

    @property
    def lease_length_s(self) -> float:
        """How long an answered request lets the broker serve, in seconds from its sending."""
        return self._lease.length_s

    def may_serve(self) -> bool:
        """Whether the broker may answer a client at this moment; call it before each answer."""
        if self._status.serving and self._lease.expired():
            self._on_lease_expired()
        return self._status.serving

    def freshness_s(self) -> float:
        """Seconds since the agent sent the last request that was answered; inf: none was yet."""
        return self._lease.age_s()

    def set_host_ready(self, *, ready: bool) -> None:
        """Set whether the host is ready; it is at the start.

        The agent asks the controller to be online only while the host is ready.
        """
        if ready == self._host_ready:
            return
        self._host_ready = ready
        if not ready and self.state in {BrokerState.ONLINE, BrokerState.STOPPING}:
            self._to(AgentEvent.HOST_UNREADY, "the host is not ready")
        self._say_now()

    def set_directories(
        self, *, failed: Collection[bytes] = (), cordoned: Collection[bytes] | None = None
    ) -> None:
        """Set which log directories have failed, and which take no new replicas (KIP-858, 1066).

        Each fetch reports them, but not to a controller of release 0.1. `cordoned` None: report
        only the failed ones.
        """
        self._directories = LogDirectories(frozenset(failed), _sorted_or_none(cordoned))
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
            incarnation=self.incarnation,
            saved_offset=self._view.fetched_offset,
        )
        self._wake_in(self._config.registration_limit_ms, self._on_registration_limit)
        self._loop.send()

    def stop(self) -> None:
        """Begin a controlled shutdown; at its end the agent calls `Host.on_gone`."""
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
        """Stop at once; call neither the controller nor the host."""
        self._status.end()
        self._end_activity()
        self._images.close()

    # For the fetch loop.

    def compose(self, max_wait_ms: int, version: int) -> bytes:
        """Encode the body of the next fetch as MessagePack, in the given version."""
        self._asked = self._wanted()
        registering = self.broker_epoch < 0
        self._registrations += registering
        # While a snapshot is being loaded, a fetch is only a heartbeat and asks for no batches.
        following = self._catching_up.pause_s() == 0
        return encode(
            MetadataFetchRequest(
                cluster_id=self._config.cluster_id,
                broker_id=self._config.broker_id,
                incarnation_id=self.incarnation,
                broker_epoch=self.broker_epoch,
                registration=(
                    registration_of(self._config, self._directories, version)
                    if registering
                    else None
                ),
                fetched_offset=self._view.fetched_offset,
                fetched_epoch=self._view.fetched_epoch,
                applied_offset=self._view.applied_offset,
                wanted_state=self._asked,
                max_bytes=self._config.fetch_bytes_max if following else 0,
                max_wait_ms=max_wait_ms,
                offline_log_dirs=self._directories.failed_texts(version),
                cordoned_log_dirs=self._directories.cordoned_texts(version),
                software=self._config.software if version >= TOLERANT else None,
            ),
            MSGPACK,
        )

    def needs_version(self) -> bool:
        """Tell whether the next fetch says what version 1 can't: the previous broker epoch."""
        return self.broker_epoch < 0 and self._config.previous_broker_epoch >= 0

    def held_ms(self) -> int:
        """Return for how many ms the controller may hold the next fetch.

        At most a heartbeat, and short enough that the answer comes before the lease ends.
        """
        if self._catching_up.pause_s() > 0:
            return 0
        slack_ms = self._config.answer_slack_ms
        longest = longest_wait_ms(self._session_ms, slack_ms)
        # If the session just became shorter, less of the lease is left than `longest` assumes.
        left = int((self._lease.length_s - self._lease.age_s()) * 1000) - slack_ms
        return max(10, min(self._config.heartbeat_ms, longest, left))

    def patience_ms(self) -> int:
        """Return for how many ms past its max wait the agent waits for an answer."""
        # The controller answers a registration only after a commit, and anything else at once.
        if self.broker_epoch >= 0:
            return self._config.answer_slack_ms
        attempt = min(self._registrations, len(_REGISTRATION_PATIENCE) - 1)
        return self._config.answer_slack_ms * _REGISTRATION_PATIENCE[attempt]

    def on_expelled(self, why: str) -> None:
        """The controller refused this process for good: stale broker epoch, or another cluster."""
        self._expel(why)

    def on_reply(self, reply: MetadataFetchReply, sent_at: float) -> None:
        """Process a leader's answer to a fetch that was sent at `sent_at`; send the next fetch."""
        registering = self.broker_epoch < 0
        if reply.broker_epoch < 0 or not (registering or reply.broker_epoch == self.broker_epoch):
            self._loop.fail(
                f"{self._loop.url} answered for broker epoch {reply.broker_epoch}; "
                f"ours is {self.broker_epoch}"
            )
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
        """Use the shorter of our session and the controller's, in ms; -1: it named none."""
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
        """Apply the batches, then the state that the controller reports; send the next fetch.

        The reported state counts even if the batches could not be used.
        """
        try:
            self._catching_up.follow(reply, self._loop.url, self.broker_epoch)
        except TooNewError as error:
            self._expel(f"this software is too old for the cluster: {error}")
        except UnusableAnswerError as error:
            self._follow_state(reply)
            self._loop.fail(f"{self._loop.url}: {error}")
        except DiffersError as error:
            self._to(
                AgentEvent.DIFFERS, f"stopped serving: {error}; the agent fetches everything again"
            )
            self._follow_state(reply)
            self._loop.send_later(_PACE_S)
        else:
            self._follow_state(reply)
            self._go_on(reply, sent_at)

    def _follow_state(self, reply: MetadataFetchReply) -> None:
        if self.state is BrokerState.GONE:
            return  # a publisher or the host has ended the agent
        if self.state is BrokerState.STOPPING and reply.may_stop:
            self._to(AgentEvent.TOLD_STOP, "the leaders have moved")
            self._leave(
                "stopped: the leaders have moved, and every online broker has applied that",
                orderly=True,
            )
        elif reply.state is SeenState.FENCED:
            self._to(AgentEvent.TOLD_FENCED, "the controller says that the broker is fenced")
        elif reply.state is SeenState.ONLINE and self._may_go_online():
            self._to(AgentEvent.TOLD_ONLINE, "the controller says that the broker is online")

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
        """Send the next fetch: at once, or after a pause if this one came back early and empty."""
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
        """A snapshot was loaded, or could not be (`problem` says why): send the next fetch."""
        if self.state is BrokerState.GONE:
            return
        if problem:
            self._log.warning(SNAPSHOT_FAILED, why=problem)
            self._loop.send_later(self._catching_up.pause_s())
        else:
            self._loop.send_now()

    def _say_now(self) -> None:
        """Send a fetch with the state that we want now, if the broker is registered."""
        if self.broker_epoch >= 0 and self.state is not BrokerState.GONE:
            self._loop.send_now()

    # Time.

    def _on_lease_expired(self) -> None:
        self._catching_up.meet_again()
        if self._status.serving:
            age_s = self._lease.age_s()
            self.self_fencings += 1
            self._log.warning(SELF_FENCED, age_s=round(age_s, 3), why=self._loop.last_problem)
            why = f"fenced itself: no request of the last {age_s:.1f} s was answered"
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
        """End the agent. An orderly end saves the image first, for at most `save_limit_ms`."""
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
        except Exception:  # noqa: BLE001 - an error of the host must not stop our heartbeats
            self._log.exception(HOST_FAILED)


def _sorted_or_none(directories: Collection[bytes] | None) -> tuple[bytes, ...] | None:
    return None if directories is None else tuple(sorted(directories))
