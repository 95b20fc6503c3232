"""Answers MetadataFetch: registration, heartbeat and fetch of deltas in one exchange (KIP-500).

The leader notes the contact when the request arrives, before any queue, once `identity` has shown
that it is the registered process's. The heartbeat part makes a decision only if something changes,
and never delays the fetch part. A reply shows what is committed. Batches are sent as they are on
disk, below the high watermark, the same bytes to every broker.

A broker can have applied only what it was sent, so an applied offset beyond the log end is refused.
If the fetched offset is beyond the log end too, the broker has another history. The reply then says
where the histories diverge, and the applied offset counts as 0.

Registrations are admitted a bounded number at a time (`registration_queue`).

A standby answers only what `standby_fetch` says, and only if the settings allow it.

A request for which there is no news is held. It is released by the next commit, by a change of the
broker's state, or when its wait is over. A request that changes the broker's own state waits a
moment for that change. Otherwise, when thousands come back, each of them would be told of the
others' changes, and ask again, several times before it is online.
"""

from typing import Final

import msgspec

from controller.config import ControllerConfig
from controller.http.fetch_asker import FetchAsker
from controller.http.fetch_content import FetchContent
from controller.http.fetch_replies import FetchReplies, HeldFetch, OnReply
from controller.http.held_requests import SHORTEST_S, HeldRequests
from controller.http.node_view import NodeView
from controller.http.registration_queue import RegistrationQueue
from controller.http.standby_fetch import StandbyFetch
from controller.leader.decisions import Decision, LeadershipLost, Outcome
from controller.leader.identity import (
    BrokerClaim,
    check_incarnation,
    check_process,
    is_process,
)
from controller.managers.broker_states import OPERATIONS, Beat, RegisteredState, state_of
from controller.managers.replica_directories import DirectoryReport, nothing_works
from controller.managers.sweep import a_sweep, in_rounds
from controller.replica.contact_sender import ContactSender
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import (
    MetadataFetchRequest,
    WantedState,
)
from metadata.uuids import parse_uuid_of
from runtime.clock import Clock
from runtime.http.requests import Caller

_DECIDING_MAX: Final = 256
"""Decisions of heartbeats that are under way. Fencings would wait behind more of them."""
_OWN_NEWS_S: Final = 0.1
"""So long a request waits at most for the change that it makes before it is told of others'."""
_Waiting = tuple[MetadataFetchRequest, OnReply]


class MetadataFetch:
    """Answers brokers, on the active controller. `node.leader` decides what they need."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        node: NodeView,
        content: FetchContent,
        held_requests: HeldRequests,
        sender: ContactSender | None = None,
    ) -> None:
        """`sender`: forwards contacts while this node is a standby; None: standbys take none."""
        self._config = config
        self._clock = clock
        self._node = node
        self._leader = node.leader
        self._identity = node.leader.identity
        self._content = content
        self._replies = FetchReplies(config, node)
        self._held_requests = held_requests
        self._standby: StandbyFetch | None = None
        if sender is not None:
            self._standby = StandbyFetch(
                config,
                clock,
                lambda: node.replica.image,
                content,
                self._replies,
                held_requests,
                sender,
            )
        self._registering: RegistrationQueue[_Waiting] = RegistrationQueue(clock)
        self._deciding: set[int] = set()
        """Brokers for which a heartbeat's decision is under way."""
        self._held_stopping: dict[int, HeldFetch] = {}

    def handle(self, request: MetadataFetchRequest, asker: FetchAsker, on_reply: OnReply) -> None:
        """Answer exactly once, now or later. An error is in the reply's field `error`."""
        pending = self._leader.proposer.pending
        if pending is None:
            self._handle_as_standby(request, asker.caller, on_reply)
            return
        try:
            claim = _claim_of(request)
            self._identity.check_claim(asker.caller, claim)
        except LogbergError as error:
            on_reply(self._replies.refusal(error))
            return
        known = request.broker_epoch >= 0 and is_process(pending.image, claim)
        if known:
            self._leader.heartbeats.touch(request.broker_id, request.broker_epoch)
        # A refusal must wait for the check too: another leader may know a newer registration.
        if not self._leader.leadership_check.holds(
            lambda: self._proceed(request, claim, asker, on_reply)
        ):
            self._proceed(request, claim, asker, on_reply, checked=known)

    def _handle_as_standby(
        self, request: MetadataFetchRequest, caller: Caller, on_reply: OnReply
    ) -> None:
        """Answer without the right to decide anything."""

        def in_service(image: MetadataImage) -> bool:
            claim = _claim_of(request)
            self._identity.check_claim(caller, claim)
            check_process(image, claim)
            return self._is_in_service(image, request)

        standby = self._standby
        if standby is not None and standby.takes(request, in_service):
            standby.handle(HeldFetch(request, request.broker_epoch, on_reply))
        else:
            on_reply(self._replies.not_leading())

    def _is_in_service(self, image: MetadataImage, request: MetadataFetchRequest) -> bool:
        """Return whether a broker is online in an image, and asks for nothing else.

        Raises LogbergError INVALID_REQUEST.
        """
        beat, said = self._beat_of(image, request), _directories_of(request)
        broker = image.cluster.brokers.get(request.broker_id)
        if broker is None or state_of(broker) is not RegisteredState.UNFENCED:
            return False
        if said is not None and self._leader.directories.news(image, said):
            return False
        return beat.wanted is WantedState.ONLINE

    def note_piece(self, caller: Caller, claim: BrokerClaim) -> None:
        """Note the contact of a broker that loads a snapshot, if this controller leads.

        Raises LogbergError if the claim is wrong.
        """
        pending = self._leader.proposer.pending
        if pending is None:
            return
        self._identity.check_claim(caller, claim)
        if is_process(pending.image, claim):
            self._leader.heartbeats.touch(claim.broker_id, claim.broker_epoch)

    def _proceed(
        self,
        request: MetadataFetchRequest,
        claim: BrokerClaim,
        asker: FetchAsker,
        on_reply: OnReply,
        *,
        checked: bool = False,
    ) -> None:
        """Decide and answer, now that the leadership check has ended.

        `checked`: the claim has just been found to be the registered process's.
        """
        pending = self._leader.proposer.pending
        if pending is None:
            on_reply(self._replies.not_leading())
            return
        rose = changes = False
        try:
            self._check_epoch(request)
            if request.broker_epoch >= 0 and not checked:
                check_process(pending.image, claim)
            request = self._believed(request)
            if request.broker_epoch < 0 or request.registration is not None:
                self._register(request, asker, on_reply)
                return
            rose = self._leader.heartbeats.report(
                request.broker_id, request.broker_epoch, request.applied_offset
            )
            self._leader.heartbeats.note_software(
                request.broker_id, request.broker_epoch, request.software
            )
            operation = self._beat_operation(request)
            if operation is not None:
                self._beat(request, operation, asker)
                changes = True
            else:
                self._report_directories(request, asker)
        except LogbergError as error:
            on_reply(self._replies.refusal(error))
            return
        self._answer_or_hold(HeldFetch(request, request.broker_epoch, on_reply), changes=changes)
        if rose:
            self._reconsider_stopping()

    def on_progress(self) -> None:
        """Something was committed: release the held requests."""
        self._held_requests.wake()
        self._reconsider_stopping()

    def on_forwarded(self) -> None:
        """Brokers that standbys heard have applied more."""
        self._reconsider_stopping()

    def on_lost(self) -> None:
        """This controller leads no more: answer the held requests with who leads."""
        self._deciding.clear()
        self._leader.leadership_check.end()
        self._held_requests.wake_at_once()

    def _check_epoch(self, request: MetadataFetchRequest) -> None:
        if request.fetched_epoch > self._leader.proposer.epoch:
            raise LogbergError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"this controller leads epoch {self._leader.proposer.epoch}, and the broker "
                f"has seen epoch {request.fetched_epoch}: ask the other controllers",
            )

    def _believed(self, request: MetadataFetchRequest) -> MetadataFetchRequest:
        """Return the request with a valid applied offset. Raises LogbergError INVALID_REQUEST."""
        log_end = self._content.log_end
        if request.applied_offset <= log_end:
            return request
        if request.fetched_offset > log_end:
            return msgspec.structs.replace(request, applied_offset=0)
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"appliedOffset: {request.applied_offset} is beyond the log's end, {log_end}; send the "
            "end offset of what the broker has applied",
        )

    # -- registration -----------------------------------------------------------------------

    def _register(
        self, request: MetadataFetchRequest, asker: FetchAsker, on_reply: OnReply
    ) -> None:
        registration = (
            request.broker_id,
            request.incarnation_id,
            request.broker_epoch,
            request.registration,
        )
        earlier = self._registering.take_over(registration, (request, on_reply))
        if earlier is not None:
            # The agent has given the earlier request up. Deciding both would cost two commits.
            earlier[1](self._replies.refusal(_asked_again()))
            return
        refusal = self._registering.refusal()
        if refusal is not None:
            on_reply(self._replies.refusal(refusal))
            return
        self._registering.begin(registration, (request, on_reply))

        def done(outcome: Outcome) -> None:
            newest, answer = self._registering.end(registration)
            self._registered(newest, outcome, answer)

        sweep = a_sweep()
        self._leader.proposer.submit(
            Decision(
                asker.judged(
                    in_rounds(
                        lambda image, sweep: self._leader.brokers.register(image, request, sweep),
                        sweep,
                    )
                ),
                asker.provenance("RegisterBroker"),
                done,
                first=True,
                sweep=sweep,
                acted_as=asker.acted_as(request.broker_id),
            )
        )

    def _registered(
        self, request: MetadataFetchRequest, outcome: Outcome, on_reply: OnReply
    ) -> None:
        """Answer a registration after its commit."""
        if isinstance(outcome, LogbergError):
            on_reply(self._replies.refusal(outcome))
            return
        broker = self._node.replica.image.cluster.brokers.get(request.broker_id)
        if isinstance(outcome, LeadershipLost) or broker is None:
            on_reply(self._replies.not_leading())
            return
        try:
            check_incarnation(broker, parse_uuid_of("incarnationId", request.incarnation_id))
        except LogbergError as error:
            # The broker was unregistered since, and another process has its id.
            on_reply(self._replies.refusal(error))
            return
        self._leader.heartbeats.touch(request.broker_id, broker.broker_epoch)
        self._answer(HeldFetch(request, broker.broker_epoch, on_reply))

    # -- heartbeat ----------------------------------------------------------------------------

    def _beat_operation(self, request: MetadataFetchRequest) -> str | None:
        """Return the operation that a heartbeat needs; None if it changes nothing now.

        Raises LogbergError STALE_BROKER_EPOCH.
        """
        pending = self._leader.proposer.pending
        if pending is None or request.broker_id in self._deciding:
            return None
        if len(self._deciding) >= _DECIDING_MAX:
            # When thousands come back at once, the others' next heartbeats find room.
            return None
        now, then = self._leader.brokers.state_change(
            pending.image, self._beat_of(pending.image, request)
        )
        if now is then or (now is RegisteredState.FENCED and then is RegisteredState.SHUTDOWN_NOW):
            return None
        return OPERATIONS[then]

    def _report_directories(self, request: MetadataFetchRequest, asker: FetchAsker) -> None:
        """Decide about directories that have failed or are cordoned, if that is news.

        Raises LogbergError INVALID_REQUEST.
        """
        pending = self._leader.proposer.pending
        said = _directories_of(request)
        if pending is None or said is None or request.broker_id in self._deciding:
            return
        directories = self._leader.directories
        if not directories.news(pending.image, said):
            return
        self._deciding.add(request.broker_id)
        sweep = a_sweep()
        self._leader.proposer.submit(
            Decision(
                asker.judged(
                    in_rounds(lambda image, sweep: directories.report(image, said, sweep), sweep)
                ),
                asker.provenance("ReportDirectories"),
                lambda _outcome: self._deciding.discard(request.broker_id),
                first=True,
                in_rounds=True,
                sweep=sweep,
                acted_as=asker.acted_as(request.broker_id),
            )
        )

    def _beat_of(self, image: MetadataImage | None, request: MetadataFetchRequest) -> Beat:
        """Return what a heartbeat asks for. A broker without a working directory can't serve."""
        wanted = request.wanted_state
        said = _directories_of(request)
        if (
            image is not None
            and said is not None
            and wanted is WantedState.ONLINE
            and nothing_works(image, request.broker_id, said.failed)
        ):
            wanted = WantedState.FENCED
        return Beat(request.broker_id, request.broker_epoch, request.applied_offset, wanted)

    def _beat(
        self, request: MetadataFetchRequest, operation: str, asker: FetchAsker | None
    ) -> None:
        """Submit the decision that a heartbeat needs; `asker` None: the controller's own one."""
        pending = self._leader.proposer.pending
        beat = self._beat_of(None if pending is None else pending.image, request)
        self._deciding.add(request.broker_id)

        def done(outcome: Outcome) -> None:
            self._deciding.discard(request.broker_id)
            if operation == OPERATIONS[RegisteredState.UNFENCED]:
                self._leader.leftover_elections.report(outcome)

        sweep = a_sweep()
        decide = in_rounds(
            lambda image, sweep: self._leader.brokers.heartbeat(image, beat, sweep), sweep
        )
        own = self._leader.own_provenance(operation)
        self._leader.proposer.submit(
            Decision(
                decide if asker is None else asker.judged(decide),
                own if asker is None else asker.provenance(operation),
                done,
                first=True,
                sweep=sweep,
                acted_as="" if asker is None else asker.acted_as(request.broker_id),
            )
        )

    def _reconsider_stopping(self) -> None:
        """Check held requests of stopping brokers, after another broker's progress or fencing.

        The controller decides this itself, so the provenance is its own and not that of the
        stopping broker's request.
        """
        for held in list(self._held_stopping.values()):
            try:
                operation = self._beat_operation(held.request)
            except LogbergError:
                self._held_requests.wake()
                continue
            if operation is not None:
                self._beat(held.request, operation, None)

    # -- fetch --------------------------------------------------------------------------------

    def _answer_or_hold(self, held: HeldFetch, *, changes: bool) -> None:
        """Answer if there is news. `changes`: the request changes the broker's own state."""
        try:
            content = self._content.find(held.request)
        except LogbergError as error:
            held.on_reply(self._replies.refusal(error))
            return
        wait_s = held.wait_s(self._config.heartbeat_s)
        if changes and content.reply.batches:
            wait_s = min(wait_s, _OWN_NEWS_S)
        elif content.something:
            wait_s = 0.0
        if wait_s <= 0 or self._replies.may_stop(held):
            held.on_reply(self._replies.reply(held, content))
            return
        own_news_s = min(wait_s, _OWN_NEWS_S) if changes else 0.0
        self._hold(held, wait_s, self._clock.monotonic() + own_news_s)

    def _hold(self, held: HeldFetch, wait_s: float, own_news_until: float) -> None:
        broker_id = held.request.broker_id
        if held.request.wanted_state is WantedState.STOPPING:
            self._held_stopping[broker_id] = held

        def release() -> None:
            if self._held_stopping.get(broker_id) is held:
                del self._held_stopping[broker_id]
            left_s = own_news_until - self._clock.monotonic()
            if broker_id in self._deciding and left_s > SHORTEST_S and self._held_requests.has_room:
                self._hold(held, left_s, own_news_until)
            else:
                self._answer(held)

        self._held_requests.park(wait_s, release)

    def _answer(self, held: HeldFetch) -> None:
        if self._leader.proposer.pending is None:
            held.on_reply(self._replies.not_leading())
            return
        try:
            content = self._content.find(held.request)
        except LogbergError as error:
            held.on_reply(self._replies.refusal(error))
            return
        held.on_reply(self._replies.reply(held, content))


def _asked_again() -> LogbergError:
    return LogbergError(
        ErrorCode.THROTTLED, "the process has sent this registration again", retry_after_ms=100
    )


def _claim_of(request: MetadataFetchRequest) -> BrokerClaim:
    return BrokerClaim(
        request.broker_id,
        request.broker_epoch,
        request.cluster_id,
        parse_uuid_of("incarnationId", request.incarnation_id),
    )


def _directories_of(request: MetadataFetchRequest) -> DirectoryReport | None:
    """Return what a heartbeat says of directories; None if nothing. Raises LogbergError."""
    if not request.offline_log_dirs and request.cordoned_log_dirs is None:
        return None
    return DirectoryReport(
        request.broker_id,
        request.broker_epoch,
        frozenset(parse_uuid_of("offlineLogDirs", text) for text in request.offline_log_dirs),
        None
        if request.cordoned_log_dirs is None
        else tuple(parse_uuid_of("cordonedLogDirs", t) for t in request.cordoned_log_dirs),
    )
