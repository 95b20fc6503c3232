"""Sends fetches to the controllers, one at a time, and judges their answers.

Rule: at most one fetch is in flight, and the answer to an abandoned fetch is ignored. The agent
lets a controller hold a fetch only if the previous answer came from the same controller. It asks
for an answer at once in the first fetch, and in the first after an error. If a fetch is unanswered
shortly after its wait, the agent abandons it and asks another controller. The next time it is more
patient with that one: when thousands of agents turn to a new leader at once, repeated requests
would keep it from answering any of them.

The agent writes each request in the highest version that both sides know. The first request to a
controller is in version 1, which all controllers know. If an older build has replaced a controller
and refuses the version, the agent repeats the request at once in the lower version.

If the settings allow it, the heartbeats of a broker in service go to a standby
(`standby_choice`). Any error of a standby counts for nothing, an order to leave included: the agent
asks the leader at once.

The agent refuses an answer, or an order to leave, from an older epoch than it has seen: a deposed
controller doesn't know of later registrations.
"""

from collections.abc import Callable
from typing import Protocol

import structlog

from broker_agent.config import AgentConfig, FetchFrom
from broker_agent.controller_choice import ControllerChoice
from broker_agent.next_fetch import NextFetch
from broker_agent.standby_choice import StandbyChoice
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.errors import ErrorReply
from metadata.messages.fetch import MetadataFetchReply
from metadata.messages.versions import Agreed
from metadata.messages.wire import MSGPACK, decode_fetch_reply
from runtime.clock import Clock, Timer
from runtime.http.requests import PendingRequest, Reply, Request, Requester, Unreachable
from runtime.randomness import Random

FETCH_PATH = "/v1/metadata/fetch"
LIVE_PATH = "/health/live"
FETCH_FAILED = "fetch_failed"
FETCH_REFUSED = "fetch_refused"
CONTROLLERS_UNUSABLE = "controllers_unusable"
_HEADERS = {"content-type": MSGPACK, "accept": MSGPACK}

_EXPELLING = frozenset({ErrorCode.STALE_BROKER_EPOCH, ErrorCode.INCONSISTENT_CLUSTER_ID})
_BY_THE_LEADER = frozenset(
    {
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.THROTTLED,
    }
)
"""Refusals by the active controller. Another controller would only redirect the agent back."""
_OF_THE_VERSION = frozenset({ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION})
"""Answers of a controller that doesn't know the request's version."""

_PATIENCE_DOUBLED = 2
"""So often at most the agent doubles its patience with a controller that doesn't answer."""
_TELL_AFTER_S = 2.0
"""The agent logs a warning after it has failed for so long: longer than a failover takes."""
_TELL_AGAIN_S = 30.0


class FetchOwner(Protocol):
    """Gets what the controllers answer."""

    def on_reply(self, reply: MetadataFetchReply, sent_at: float) -> None:
        """Process the leader's answer to a fetch sent at `sent_at`, and send the next one."""

    def on_expelled(self, why: str) -> None:
        """The controller refused this process for good. The loop has stopped."""


class FetchLoop:
    """Sends fetches, one after another."""

    def __init__(
        self,
        config: AgentConfig,
        clock: Clock,
        random: Random,
        requester: Requester,
        next_fetch: NextFetch,
        owner: FetchOwner,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._choice = ControllerChoice(config.controllers, random, config.heartbeat_ms / 1000)
        self._standby = (
            StandbyChoice(config.controllers, config.broker_id, clock, random)
            if config.fetch_from is FetchFrom.ANY
            else None
        )
        self._clock = clock
        self._requester = requester
        self._next_fetch = next_fetch
        self._owner = owner
        self._log = log
        self._in_flight: PendingRequest | None = None
        self._number = 0
        self._max_wait_ms = 0
        self._timer: Timer | None = None
        self._settled_url: str | None = None
        self._agreed = Agreed()
        self._ended = False
        self._unanswered: dict[str, int] = {}
        """By controller: how many fetches in a row it did not answer. Only those that are not 0."""
        self._tell_at: float | None = None
        """When to log that no controller gives a usable answer; None: the last answer was good."""
        self.last_problem = "no controller has answered"
        self.fetches = 0
        self.failures = 0

    @property
    def url(self) -> str:
        """The controller that gets the next fetch: the active one, as far as known."""
        return self._choice.url

    @property
    def urls(self) -> tuple[str, ...]:
        """All controllers that the agent knows."""
        return self._choice.urls

    @property
    def leader_epoch(self) -> int:
        """The newest epoch in any answer; -1: none yet."""
        return self._choice.epoch

    @property
    def settling(self) -> bool:
        """Whether the last fetch asked for an answer at once."""
        return self._max_wait_ms == 0

    def send(self) -> None:
        """Send the next fetch, unless one is in flight."""
        self._cancel_timer()
        if self._ended or self._in_flight is not None:
            return
        url = self._url_for_next()
        if self._next_fetch.needs_version() and not self._agreed.knows(url):
            self._ask_for_versions(url)
            return
        max_wait_ms = self._next_fetch.held_ms() if url == self._settled_url else 0
        self._max_wait_ms = max_wait_ms
        unanswered = self._unanswered.get(url, 0)
        patience_ms = self._next_fetch.patience_ms() << min(unanswered, _PATIENCE_DOUBLED)
        deadline_s = (max_wait_ms + patience_ms) / 1000
        body = self._next_fetch.compose(max_wait_ms, self._agreed.version(url))
        sent_at = self._clock.monotonic()
        self._number += 1
        self.fetches += 1
        self._in_flight = self._requester.request(
            url,
            Request("POST", FETCH_PATH, body, headers={**_HEADERS, **self._agreed.headers(url)}),
            self._waits_for(self._number, url, sent_at),
            deadline_s,
        )

    def _url_for_next(self) -> str:
        if self._standby is None or not self._next_fetch.only_renews():
            return self._choice.url
        return self._standby.url(self._choice.url)

    def _ask_for_versions(self, url: str) -> None:
        """Ask the controller for anything: each answer names the versions that it reads."""

        def answered(answer: Reply | Unreachable) -> None:
            if number != self._number or self._ended:
                return
            self._in_flight = None
            if isinstance(answer, Unreachable):
                self._fail_leader(f"{url} does not answer: {answer.reason}")
                return
            self._agreed.heard(url, answer.headers)
            self.send()

        self._number += 1
        number = self._number
        request = Request("GET", LIVE_PATH)
        deadline_s = self._next_fetch.patience_ms() / 1000
        self._in_flight = self._requester.request(url, request, answered, deadline_s)

    def send_now(self) -> None:
        """Abandon the fetch in flight and send a new one, which asks for an answer at once."""
        self._give_up()
        self._settled_url = None
        self.send()

    def abandon(self) -> None:
        """Ignore the answer to the fetch in flight, if there is one."""
        if self._in_flight is not None:
            self._give_up()
            self._settled_url = None

    def send_later(self, delay_s: float) -> None:
        """Send the next fetch after `delay_s` seconds, unless another call sends it first."""
        self._cancel_timer()
        if not self._ended:
            self._timer = self._clock.call_later(delay_s, self.send)

    def fail(self, why: str) -> None:
        """The newest answer can't be used: ask another controller after a backoff."""
        self._fail_at(self._settled_url or self._choice.url, why)

    def _fail_leader(self, why: str) -> None:
        now = self._clock.monotonic()
        if self._tell_at is None:
            self._tell_at = now + _TELL_AFTER_S
        elif now >= self._tell_at:
            self._tell_at = now + _TELL_AGAIN_S
            self._log.warning(CONTROLLERS_UNUSABLE, why=why)
        self._note(why)
        self.send_later(self._choice.failed())

    def end(self) -> None:
        """Stop for good."""
        self._ended = True
        self._cancel_timer()
        self._give_up()

    def _give_up(self) -> None:
        self._number += 1
        if self._in_flight is not None:
            self._in_flight.abandon()
            self._in_flight = None

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _waits_for(
        self, number: int, url: str, sent_at: float
    ) -> Callable[[Reply | Unreachable], None]:
        def answered(answer: Reply | Unreachable) -> None:
            if number == self._number and not self._ended:
                self._in_flight = None
                self._judge(url, sent_at, answer)

        return answered

    def _judge(self, url: str, sent_at: float, answer: Reply | Unreachable) -> None:
        if isinstance(answer, Unreachable):
            if not answer.refused:
                self._unanswered[url] = self._unanswered.get(url, 0) + 1
            self._agreed.forget(url)
            self._fail_at(url, f"{url} does not answer: {answer.reason}")
            return
        self._unanswered.pop(url, None)
        lowered = self._agreed.heard(url, answer.headers)
        try:
            content_type = answer.headers.get("content-type", MSGPACK)
            reply = decode_fetch_reply(answer.status, answer.body, content_type)
        except LogbergError as error:
            self._fail_at(url, f"{url} sent an answer that can't be read: {error.message}")
            return
        if lowered and reply.error is not None and reply.error.known_code() in _OF_THE_VERSION:
            # An older build runs there now and only refuses the version. Repeat it in a lower one.
            self.send()
        elif reply.error is not None:
            self._on_error(url, reply, reply.error)
        elif reply.leader_epoch < self._choice.epoch:
            self._fail_at(url, f"{url} answered for epoch {reply.leader_epoch}, which is over")
        else:
            if self._standby is not None:
                self._standby.answered()
                self._choice.follow(url, reply.leader_url, reply.leader_epoch)
            self._choice.answered(reply.leader_epoch)
            self.last_problem = ""
            self._tell_at = None
            self._settled_url = url
            self._owner.on_reply(reply, sent_at)

    def _on_error(self, url: str, reply: MetadataFetchReply, error: ErrorReply) -> None:
        if self._is_standby(url):
            self._fail_at(url, f"{url}: {error.code}: {error.message}")
            return
        code = error.known_code()
        why = f"{url}: {error.code}: {error.message}"
        epoch = max(error.leader_epoch, reply.leader_epoch)
        foreign = code is ErrorCode.INCONSISTENT_CLUSTER_ID
        if code in _EXPELLING and (foreign or epoch >= self._choice.epoch):
            self.end()
            self._owner.on_expelled(why)
        elif code is ErrorCode.NOT_CONTROLLER:
            self._note(why)
            self.send_later(self._choice.hinted(error.leader_url or reply.leader_url, epoch))
        elif code in _BY_THE_LEADER:
            if why != self.last_problem:
                self._log.warning(FETCH_REFUSED, why=why)
            self._note(why)
            self.send_later(self._choice.refused((error.retry_after_ms or 0) / 1000))
        else:
            self._fail_leader(why)

    def _is_standby(self, url: str) -> bool:
        return self._standby is not None and url != self._choice.url

    def _fail_at(self, url: str, why: str) -> None:
        """The answer of one controller can't be used. After a standby's, ask the leader."""
        if self._standby is not None and url == self._standby.own_url:
            # Also if it led: it must not be asked as a standby at once.
            self._standby.failed()
        if self._standby is None or url == self._choice.url:
            self._fail_leader(why)
            return
        self._note(why)
        self.send()

    def _note(self, why: str) -> None:
        self._settled_url = None
        self.last_problem = why
        self.failures += 1
        self._log.debug(FETCH_FAILED, why=why)
