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

import structlog

from broker_agent.catching_up import CatchingUp, FollowError
from broker_agent.config import AgentConfig, lease_s
from broker_agent.controller_session import ControllerSession
from broker_agent.fetch_loop import FetchLoop
from broker_agent.head_keeping import HeadKeeping
from broker_agent.host import Host
from broker_agent.image_store import ImageStore
from broker_agent.lease import Lease
from broker_agent.next_fetch import NextFetch
from broker_agent.publishers import Publisher
from broker_agent.registration import LogDirectories
from broker_agent.snapshot_download import SnapshotDownload
from broker_agent.states import AgentEvent, AgentStatus, BrokerState
from broker_agent.stop_limits import StopLimits
from broker_agent.view import MetadataView, TooNewError, UnusableAnswerError
from metadata.image import MetadataImage
from metadata.image.old_pages import all_pages
from metadata.messages.fetch import MetadataFetchReply, SeenState, WantedState
from metadata.uuids import uuid4_from, uuid_text
from runtime.clock import Clock, Timer
from runtime.disk.interface import Disk
from runtime.http.requests import Requester
from runtime.loop.retirement import Retirement
from runtime.randomness import Random

AGENT_STARTED = "agent_started"
BROKER_REGISTERED = "broker_registered"
STATE_CHANGED = "state_changed"
SELF_FENCED = "self_fenced"
HOST_FAILED = "host_failed"
SNAPSHOT_FAILED = "snapshot_failed"

_PACE_S = 0.1
"""The shortest time between two fetches that bring nothing."""


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
        self._lease = Lease(clock, lease_s(config.session_ms), self._on_lease_expired)
        self._session = ControllerSession(config, self._lease, self._log)
        self._retirement = Retirement(clock)
        self._images = ImageStore(
            config,
            clock,
            disk,
            self._log,
            lambda image: self._retirement.released(all_pages(image)),
        )
        self._view = MetadataView(
            config.cluster_id, publishers, self._log, self._retirement.replaced
        )
        self._heads = HeadKeeping(
            config,
            clock,
            disk,
            requester,
            lambda: self._loop.url,
            lambda: self._loop.urls,
            self._on_contradicted,
            self._log,
        )
        self._catching_up = CatchingUp(
            config,
            clock,
            self._view,
            self._images,
            self._heads,
            SnapshotDownload(
                config.cluster_id, self.incarnation, clock, disk, requester, self._log
            ),
            self._on_loaded,
            self._on_defect,
            self._log,
        )
        self._next_fetch = NextFetch(
            config, self.incarnation, self._status, self._view, self._catching_up, self._session
        )
        self._loop = FetchLoop(config, clock, random, requester, self._next_fetch, self, self._log)
        self._stop_limits = StopLimits(config, clock, self._on_stop_limit)
        self.reason = "not registered yet"
        self.started = False
        """Whether the saved image was loaded, so that the agent fetches."""
        self.high_watermark = -1
        self._newest_reply: MetadataFetchReply | None = None
        self.self_fencings = 0
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
    def heads(self) -> HeadKeeping:
        """The newest signed head that the agent saw."""
        return self._heads

    @property
    def incarnation(self) -> str:
        """The id of this process, 22 characters."""
        return uuid_text(self._incarnation_id)

    @property
    def broker_epoch(self) -> int:
        """The epoch of this process's registration; -1: it is not registered yet."""
        return self._next_fetch.broker_epoch

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
        if ready == self._next_fetch.host_ready:
            return
        self._next_fetch.host_ready = ready
        if not ready and self.state in {BrokerState.ONLINE, BrokerState.STOPPING}:
            self._to(AgentEvent.HOST_UNREADY, "the host is not ready")
        self._say_now()

    @property
    def directories(self) -> LogDirectories:
        """What the host said last of its log directories."""
        return self._next_fetch.directories

    def set_directories(
        self, *, failed: Collection[bytes] = (), cordoned: Collection[bytes] | None = None
    ) -> None:
        """Set which log directories have failed, and which take no new replicas (KIP-858, 1066).

        Each fetch reports them, but not to a controller of release 0.1. `cordoned` None: report
        only the failed ones.
        """
        self._next_fetch.directories = LogDirectories(
            frozenset(failed), None if cordoned is None else tuple(sorted(cordoned))
        )
        self._say_now()

    def start(self) -> None:
        """Load the image from disk in slices, then begin to fetch.

        Raises OSError, FolderInUseError, WrongFolderError, HeadFileError.
        """
        self._catching_up.begin(self._on_ready)

    def _on_ready(self) -> None:
        self.started = True
        self._log.info(
            AGENT_STARTED,
            incarnation=self.incarnation,
            saved_offset=self._view.fetched_offset,
        )
        self._wake_in(self._config.registration_limit_ms, self._on_registration_limit)
        self._heads.begin()
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

    def on_expelled(self, why: str) -> None:
        """The controller refused this process for good: stale broker epoch, or another cluster."""
        self._to(AgentEvent.EXPELLED, why)
        self._leave(why, orderly=False)

    def on_reply(self, reply: MetadataFetchReply, sent_at: float) -> None:
        """Process a leader's answer to a fetch that was sent at `sent_at`; send the next fetch."""
        registering = self.broker_epoch < 0
        if reply.broker_epoch < 0 or not (registering or reply.broker_epoch == self.broker_epoch):
            self._loop.fail(
                f"{self._loop.url} answered for broker epoch {reply.broker_epoch}; "
                f"ours is {self.broker_epoch}"
            )
            return
        self._session.follow(reply.session_timeout_ms)
        self._lease.renew(sent_at)
        self._stop_limits.heard()
        self.high_watermark = max(self.high_watermark, reply.high_watermark)
        if registering:
            self._next_fetch.broker_epoch = reply.broker_epoch
            self._log.info(BROKER_REGISTERED, broker_epoch=reply.broker_epoch)
            self._cancel_timer()
            self._to(AgentEvent.REGISTERED, f"registered with broker epoch {reply.broker_epoch}")
        if not self._lease.expired():
            self._catching_up.meet(max(reply.high_watermark, self.broker_epoch + 1))
        self._follow(reply, sent_at)

    # Answers.

    def _follow(self, reply: MetadataFetchReply, sent_at: float) -> None:
        """Follow the content of an answer, then the state that the controller reports.

        A large content takes many slices, in which heartbeats go on. The state that the newest
        answer reports counts at the end, even if the batches could not be used. But the broker
        stops serving as soon as an answer says that it is fenced.
        """
        self._newest_reply = reply
        if not self._catching_up.following:
            url = self._loop.url
            self._catching_up.follow(
                reply,
                url,
                self.broker_epoch,
                lambda error: self._followed(reply, url, sent_at, error),
            )
        if self._catching_up.following:
            if reply.state is SeenState.FENCED:
                self._to_fenced()
            self._loop.send_later(self._catching_up.pause_s())

    def _followed(
        self, reply: MetadataFetchReply, url: str, sent_at: float, error: FollowError | None
    ) -> None:
        """The content was applied, or can't be used; send the next fetch."""
        # A heartbeat in flight says what we had before. Its answer would be about that.
        self._loop.abandon()
        newest = self._newest_reply or reply
        if error is None:
            self._follow_state(newest)
            self._go_on(reply, sent_at)
        elif isinstance(error, TooNewError):
            self.on_expelled(f"this software is too old for the cluster: {error}")
        elif isinstance(error, UnusableAnswerError):
            self._follow_state(newest)
            self._loop.fail(f"{url}: {error}")
        else:
            self._to(
                AgentEvent.DIFFERS, f"stopped serving: {error}; the agent fetches everything again"
            )
            self._follow_state(newest)
            self._loop.send_later(_PACE_S)

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
            self._to_fenced()
        elif reply.state is SeenState.ONLINE and self._may_go_online():
            self._to(AgentEvent.TOLD_ONLINE, "the controller says that the broker is online")

    def _to_fenced(self) -> None:
        self._to(AgentEvent.TOLD_FENCED, "the controller says that the broker is fenced")

    def _may_go_online(self) -> bool:
        return (
            self.state in {BrokerState.FENCED, BrokerState.ONLINE}
            and self._next_fetch.asked is WantedState.ONLINE
            and self._catching_up.caught_up
            and not self._lease.expired()
        )

    def _go_on(self, reply: MetadataFetchReply, sent_at: float) -> None:
        """Send the next fetch: at once, or after a pause if this one came back early and empty."""
        pause_s = self._catching_up.pause_s()
        if pause_s > 0:
            self._loop.send_later(pause_s)
            return
        took_s = self._clock.monotonic() - sent_at
        if (
            reply.batches
            or self._next_fetch.wants_other()
            or took_s >= _PACE_S
            or self._loop.settling
        ):
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

    def _on_defect(self) -> None:
        """Fetch no more, so that the lease ends: an image that stands still must not be served."""
        self._loop.end()

    def _on_contradicted(self, why: str) -> None:
        """The cluster's signed head contradicts the one that the agent saw."""
        self._catching_up.contradicted(why)
        if self.state not in {BrokerState.OFFLINE, BrokerState.GONE}:
            self._to(AgentEvent.DIFFERS, f"stopped serving: {why}")

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
            self.on_expelled(f"not registered within {limit_s:g} s: {self._loop.last_problem}")

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
        self._heads.end()
        self._catching_up.end()
        self._lease.end()

    def _tell_host(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # noqa: BLE001 - an error of the host must not stop our heartbeats
            self._log.exception(HOST_FAILED)
