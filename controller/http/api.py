"""Dispatches HTTP requests: routes, formats, errors.

`Api.handle(request, reply)` answers every request exactly once, now or later. It knows nothing of
connections.

- Bodies are JSON or MessagePack, by `content-type`, and for the answer by `accept`.
- An answer whose status isn't 200 has an `ErrorReply` as its body. There are three exceptions:
  MetadataFetch has its error in the field `error`, a snapshot's range has status 206, and
  /health/ready has a `HealthReply`.
- A request may name its version. Every answer says which versions the controller reads
  (`metadata.messages.versions`).
- A change takes the headers `x-logberg-request-id`, `-reason`, `-client-id`, `-on-behalf-of`
  and `-expect-offset`.
  Release 0.1 calls them `x-quorate-…` (`metadata.messages.header_names`).
"""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

import msgspec

from controller.access.listing import ListFilter
from controller.config import ControllerConfig
from controller.http.access_checks import AccessChecks
from controller.http.archive_runs import ArchiveRuns
from controller.http.attempt_noting import OF_CALLERS, AttemptNoting
from controller.http.bridge.answers import READS as BRIDGE_READS
from controller.http.broker_requests import BrokerRequests, claim_of
from controller.http.call import Call, OnReply
from controller.http.change_routes import CHANGES
from controller.http.clients.answers import READS as CLIENT_READS
from controller.http.clients.answers import READS_IN_STEPS as CLIENT_READS_IN_STEPS
from controller.http.clients.asked import Asked, ReadContext
from controller.http.clients.erasures import erasures_of, keys_for_broker
from controller.http.coordination.answers import READS as COORDINATION_READS
from controller.http.coordination.renewals import Renewals
from controller.http.coordination.watches import CoordinationWatches
from controller.http.declared.answers import READS as DECLARED_READS
from controller.http.degraded import ask_of
from controller.http.describe_configs import list_configs, one_config
from controller.http.fetch_content import unreadable
from controller.http.head_keys import READS as HEAD_KEY_READS
from controller.http.imports.parts import PartKeeping
from controller.http.joined_changes import JoinedChanges
from controller.http.metadata_fetch import MetadataFetch
from controller.http.metrics import ControllerMetrics
from controller.http.node_view import NodeView, View
from controller.http.openapi import openapi_document
from controller.http.queries import (
    Queries,
    broker_id_of,
    list_brokers,
    list_features,
    list_topics,
    one_broker,
    one_topic,
)
from controller.http.replicas.answers import READS as REPLICA_READS
from controller.http.replicas.answers import READS_IN_STEPS as REPLICA_READS_IN_STEPS
from controller.http.resource_watch import ResourceWatch
from controller.http.route import Route
from controller.http.routes import RouteMatch, find_route
from controller.http.segment_ranges import SegmentRanges
from controller.http.shared_replies import FetchAnswer
from controller.http.shown_lists import list_shown_configs, list_shown_topics
from controller.http.slow_requests import SlowRequests
from controller.http.snapshot_ranges import SnapshotRanges
from controller.http.transferring import Transferring
from controller.http.transparency import Transparency
from controller.http.watch import Watch
from controller.leader.requested_change import RequestedChange, if_allowed
from controller.people.door import PeopleDoor
from controller.result import Decide
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import (
    AlterPartitionRequest,
    AssignReplicasRequest,
    AuthorityReply,
    CallerReply,
    CoordinationWatchRequest,
    HealthReply,
    ImportPartRequest,
    JoinedChangesRequest,
    MetadataFetchRequest,
    RenewSessionRequest,
    TransferLeadershipRequest,
)
from metadata.messages.header_names import (
    check_names,
    has_old_names,
    knows_new_names,
    with_both_names,
    with_new_names,
)
from metadata.messages.parts import LongMessage
from metadata.messages.versions import (
    RANGE_HEADER,
    TOLERANT,
    UNVERSIONED,
    range_text,
    version_of,
)
from metadata.messages.wire import JSON
from metadata.person_opener import PersonOpener
from metadata.pseudonyms import check_own_name
from runtime.clock import Clock
from runtime.http.requests import Caller, Reply, Request
from runtime.loop.slices import run_in_slices
from runtime.metrics import CONTENT_TYPE
from runtime.tracing import RequestTrace, Tracing

T = TypeVar("T")
READS = {
    **BRIDGE_READS,
    **CLIENT_READS,
    **COORDINATION_READS,
    **DECLARED_READS,
    **HEAD_KEY_READS,
    **REPLICA_READS,
}
"""By the name of the route. `Api` itself has the other reads."""
READS_IN_STEPS = {**CLIENT_READS_IN_STEPS, **REPLICA_READS_IN_STEPS}


class Api:
    """The dispatcher. `_list_topics` handles the route named list_topics, and so on.

    Routes that change something are in `controller.http.change_routes`.
    """

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        node: NodeView,
        metrics: ControllerMetrics,
        fetch: MetadataFetch,
        alter: BrokerRequests,
        assigning: BrokerRequests,
        queries: Queries,
        watch: Watch,
        resource_watch: ResourceWatch,
        snapshots: SnapshotRanges,
        segments: SegmentRanges,
        archive_runs: ArchiveRuns,
        transparency: Transparency,
        renewals: Renewals,
        transferring: Transferring,
        import_parts: PartKeeping,
        coordination: CoordinationWatches,
        slow_requests: SlowRequests,
        access_checks: AccessChecks,
        attempts: AttemptNoting,
        people: PeopleDoor,
        opener: PersonOpener,
        tracing: Tracing | None = None,
    ) -> None:
        """`opener` opens names in answers.

        `tracing`: for changes, and for requests of callers that trace them.
        """
        self._newest_version = config.newest_version
        self._range: dict[str, str] = {}
        """Says which versions of requests this controller reads. Release 0.1 doesn't say."""
        if self._newest_version != UNVERSIONED:
            self._range[RANGE_HEADER] = range_text(self._newest_version)
        self._range_twice = with_both_names(self._range)
        """The same for callers that may only know the old name."""
        self._clock = clock
        self._node = node
        self._leader = node.leader
        self._own_metrics = metrics
        self._fetch = fetch
        self._alter = alter
        self._assigning = assigning
        self._queries = queries
        self._read_context = ReadContext(config, queries.pages, opener, people.people)
        self._watch = watch
        self._resource_watch = resource_watch
        self._snapshots = snapshots
        self._segments = segments
        self._archive_runs = archive_runs
        self._transparency = transparency
        self._renewals = renewals
        self._transferring = transferring
        self._import_parts = import_parts
        self._coordination = coordination
        self._slow_requests = slow_requests
        self._tracing = tracing
        self._access_checks = access_checks
        self._attempts = attempts
        self._people = people
        self._joined_changes = JoinedChanges(clock, config.write_wait_s, self._begin_joined)
        self._openapi = b""

    def handle(self, request: Request, on_reply: OnReply) -> None:
        """Answer a request exactly once, now or later."""
        new_names = knows_new_names(request.headers)

        def answer(reply: Reply) -> None:
            if new_names:
                headers = {**reply.headers, **self._range}
            else:
                headers = {**with_both_names(reply.headers), **self._range_twice}
            on_reply(Reply(reply.status, reply.body, headers, reply.parts))

        self._begin(find_route(request.method, request.path), request, answer)

    def _begin_joined(self, found: RouteMatch, request: Request, on_reply: OnReply) -> None:
        """Answer a change that came among others; the caller's name was checked with them."""
        self._begin(found, request, on_reply, joined=True)

    def _begin(
        self, found: RouteMatch, request: Request, on_reply: OnReply, *, joined: bool = False
    ) -> None:
        """Answer a request that came alone, or a change that came among others."""
        operation = "unknown" if found.route is None else found.route.name
        arrived = self._clock.monotonic()
        trace = None
        if self._tracing is not None and found.route is not None:
            trace = begin_trace(self._tracing, found.route, request)
            request = msgspec.structs.replace(request, trace=trace)

        def answer(reply: Reply) -> None:
            now, waiting = self._clock.monotonic(), self._leader.proposer.waiting
            self._own_metrics.answered(operation, reply.status, now - arrived)
            if reply.status in OF_CALLERS or self._attempts.takes_accepted:
                self._attempts.answered(operation, call, reply.status)
            self._slow_requests.answered(
                operation, call.request, reply.status, arrived, now, waiting
            )
            if trace is not None:
                trace.end(reply.status)
            on_reply(reply)

        call = Call(self._node, self._clock.wall_ms, request, found, answer)
        try:
            call.request = request = _with_new_names(request)
            if found.route is None:
                call.no_route(found)
                return
            if not joined:
                check_own_name(request.caller.principal, request.caller.method)
            version = version_of(request.headers, self._newest_version)
            call.tolerant = version >= TOLERANT
            if not found.route.always:
                refusal = self._node.refusal(ask_of(found.route, request.query))
                if refusal is not None:
                    raise refusal
            self._let_in(found.route, call)
        except LogbergError as error:
            call.refuse(error, request.headers.get("x-logberg-request-id"))
        except OSError as error:
            call.refuse(unreadable(error), request.headers.get("x-logberg-request-id"))

    def _let_in(self, route: Route, call: Call) -> None:
        """Put pseudonyms into a request, and carry it out. Raises LogbergError."""
        if self._access_checks.guard.is_public(route.name):
            self._carry_out(route, call)
            return

        def known(request: Request) -> None:
            call.request = request
            self._carry_out(route, call)

        try:
            self._people.with_pseudonyms(
                call.request, _contained(call, known), self._refusing(call)
            )
        except LogbergError as error:
            raise self._with_leader(error) from None

    def _carry_out(self, route: Route, call: Call) -> None:
        """Read the body, have the request judged, and answer it. Raises LogbergError."""
        if route.long_list:
            self._carry_out_in_steps(route, call)
            return
        if route.request is not None:
            call.message = self._people.message(call.body(route.request))
        self._access_checks.when_allowed(route, call, lambda: self._allowed(route, call))

    def _allowed(self, route: Route, call: Call) -> None:
        """Answer an allowed request; a change first gets pseudonyms. Raises LogbergError."""
        if not route.changes:
            self._answer(route, call)
            return

        def named(message: Any) -> None:
            call.message = message
            self._answer(route, call)

        self._people.give_missing(call.message, _contained(call, named), self._refusing(call))

    def _refusing(self, call: Call) -> Callable[[LogbergError], None]:
        """Return what refuses a request later."""
        request_id = call.request.headers.get("x-logberg-request-id")
        return lambda error: call.refuse(self._with_leader(error), request_id)

    def _with_leader(self, error: LogbergError) -> LogbergError:
        """Return an error that says whom to ask, if this controller doesn't lead."""
        return self._node.not_here() if error.code is ErrorCode.NOT_CONTROLLER else error

    def _answer(self, route: Route, call: Call) -> None:
        """Call what answers a route. Raises LogbergError."""
        if route.changes:
            asked = Asked(call.request, call.arguments, call.message)
            self._change(call, CHANGES[route.name](self._leader, asked))
        elif route.name in READS:
            asked = Asked(call.request, call.arguments)
            read, context = READS[route.name], self._read_context
            self._queries.read(call.request, lambda view: read(view, asked, context), call.answer)
        elif route.name in READS_IN_STEPS:
            asked = Asked(call.request, call.arguments, shown=lambda: self._shown(call))
            steps, context = READS_IN_STEPS[route.name], self._read_context
            self._queries.read_in_steps(
                call.request, lambda view: steps(view, asked, context), call.answer_later
            )
        else:
            getattr(self, f"_{route.name}")(call)

    def _carry_out_in_steps(self, route: Route, call: Call) -> None:
        """Decode a long request between others, and then submit its change. Raises LogbergError."""

        def work() -> Generator[None, None, None]:
            call.message = yield from call.long_body(route.request, route.long_list)
            self._access_checks.when_allowed(route, call, lambda: self._answer(route, call))

        def contained() -> Generator[None, None, None]:
            try:
                yield from steps
            except LogbergError as error:
                call.refuse(error, call.request.headers.get("x-logberg-request-id"))

        steps = work()
        for _ in steps:
            run_in_slices(self._clock, contained(), lambda: None)
            return

    # -- brokers --------------------------------------------------------------------------

    def _metadata_fetch(self, call: Call) -> None:
        message: MetadataFetchRequest = call.message

        def done(answer: FetchAnswer) -> None:
            code = answer.error
            status = 200 if code is None else code.status
            body = answer.encoded(call.format)
            call.reply_encoded(status, body, code=code, retry_after_ms=answer.retry_after_ms)

        self._fetch.handle(message, call.request.caller, done)

    def _alter_partition(self, call: Call) -> None:
        message: AlterPartitionRequest = call.message
        claim = claim_of(message.broker_id, message)
        isrs = self._leader.isrs
        decide = if_allowed(lambda image: isrs.alter(image, message), call.access)
        self._alter.handle(claim, call.request.caller, decide, call.answer)

    def _assign_replicas(self, call: Call) -> None:
        broker_id = broker_id_of(call.arguments["id"])
        message: AssignReplicasRequest = call.message
        claim = claim_of(broker_id, message)
        decide = if_allowed(self._leader.directories.assign(broker_id, message), call.access)
        self._assigning.handle(claim, call.request.caller, decide, call.answer, in_rounds=True)

    def _list_snapshots(self, call: Call) -> None:
        call.answer(self._snapshots.listed(call.request))

    def _read_snapshot(self, call: Call) -> None:
        call.on_reply(self._snapshots.read(call.request, call.arguments["id"]))

    def _list_segments(self, call: Call) -> None:
        call.answer(self._segments.listed(call.request))

    def _read_segment(self, call: Call) -> None:
        def reply(answer: Reply | LogbergError) -> None:
            if isinstance(answer, LogbergError):
                call.refuse(answer)
            else:
                call.on_reply(answer)

        self._segments.read(call.request, call.arguments["base"], reply)

    def _run_archive(self, call: Call) -> None:
        self._archive_runs.handle(call.request, call.answer)

    def _authority(self, call: Call) -> None:
        authority = self._read_context.config.authority
        if authority is None:
            raise LogbergError(
                ErrorCode.SECURITY_DISABLED, "this controller lets no node join by a token ([join])"
            )
        call.answer(AuthorityReply(authority.pem, authority.fingerprint))

    def _read_signed_head(self, call: Call) -> None:
        call.on_reply(self._transparency.head())

    def _read_tile(self, call: Call) -> None:
        call.on_reply(self._transparency.tile(call.arguments["path"]))

    def _make_proof(self, call: Call) -> None:
        self._transparency.proof(call.request, call.arguments["offset"], call.answer)

    def _describe_erasures(self, call: Call) -> None:
        image = self._node.replica.image
        call.answer(erasures_of(self._leader.node_id, image, self._node.subject_keys))

    def _read_subject_keys(self, call: Call) -> None:
        call.answer(keys_for_broker(self._node.replica.image, self._node.subject_keys))

    # -- changes --------------------------------------------------------------------------

    def _change(self, call: Call, change: RequestedChange) -> None:
        """Submit a change. If this controller doesn't lead, the answer says whom to ask."""

        def answer(
            outcome: msgspec.Struct | LongMessage | LogbergError, request_id: str | None
        ) -> None:
            if isinstance(outcome, LogbergError):
                outcome = self._with_leader(outcome)
            call.answer(outcome, request_id)

        def judging(decide: Decide) -> Decide:
            given = self._people.while_given(call.request, call.message, decide)
            return if_allowed(given, call.access)

        judged = change._replace(
            decide=judging(change.decide),
            undivided=change.undivided and judging(change.undivided),
        )
        self._leader.changes.submit(call.request, judged, answer)

    def _make_changes(self, call: Call) -> None:
        message: JoinedChangesRequest = call.message
        if self._leader.proposer.pending is None:
            raise self._node.not_here()
        self._joined_changes.handle(call, message)

    # -- reads ----------------------------------------------------------------------------

    def _shown(self, call: Call) -> ListFilter | None:
        """Return what the asker of a list may see, by the newest entries; None: all of it."""
        return None if call.access is None else call.access.list_filter(self._node.replica.image)

    def _read_list(
        self,
        call: Call,
        everything: Callable[[View], LongMessage],
        some: Callable[[View, ListFilter], Generator[None, None, LongMessage]],
    ) -> None:
        """Answer with a list. What the asker may see is decided when the image is read."""

        def answer(view: View) -> LongMessage | Generator[None, None, LongMessage]:
            shown = self._shown(call)
            return everything(view) if shown is None else some(view, shown)

        def on_answer(
            outcome: LongMessage | Generator[None, None, LongMessage] | LogbergError,
        ) -> None:
            if isinstance(outcome, Generator):
                call.answer_later(outcome)
            else:
                call.answer(outcome)

        self._queries.read_either(call.request, answer, on_answer)

    def _list_topics(self, call: Call) -> None:
        query, pages = call.request.query, self._queries.pages
        self._read_list(
            call,
            lambda view: list_topics(view, query, pages),
            lambda view, shown: list_shown_topics(view, query, pages, shown),
        )

    def _describe_topic(self, call: Call) -> None:
        name, query, pages = call.arguments["name"], call.request.query, self._queries.pages
        self._queries.read(
            call.request, lambda view: one_topic(view, name, query, pages), call.answer
        )

    def _list_brokers(self, call: Call) -> None:
        query, pages = call.request.query, self._queries.pages
        self._queries.read(call.request, lambda view: list_brokers(view, query, pages), call.answer)

    def _describe_broker(self, call: Call) -> None:
        text = call.arguments["id"]
        self._queries.read(call.request, lambda view: one_broker(view, text), call.answer)

    def _list_features(self, call: Call) -> None:
        voters = self._node.voters()
        self._queries.read(call.request, lambda view: list_features(view, voters), call.answer)

    def _list_configs(self, call: Call) -> None:
        query, pages = call.request.query, self._queries.pages
        self._read_list(
            call,
            lambda view: list_configs(view, query, pages),
            lambda view, shown: list_shown_configs(view, query, pages, shown),
        )

    def _describe_config(self, call: Call) -> None:
        kind, name, own = call.arguments["type"], call.arguments["name"], self._leader.own_configs
        self._queries.read(
            call.request, lambda view: one_config(view, kind, name, own), call.answer
        )

    def _read_log(self, call: Call) -> None:
        self._watch.read(call.request, call.answer_later)

    def _watch_resource(self, call: Call) -> None:
        self._resource_watch.read(call.request, call.answer)

    # -- coordination ---------------------------------------------------------------------

    def _renew_session(self, call: Call) -> None:
        message: RenewSessionRequest = call.message
        self._renewals.handle(call.request, message, call.answer)

    def _keep_import_part(self, call: Call) -> None:
        message: ImportPartRequest = call.message
        self._import_parts.handle(call.request, message, call.answer)

    def _watch_coordination(self, call: Call) -> None:
        message: CoordinationWatchRequest = call.message
        self._coordination.read(message, call.answer)

    # -- the node -------------------------------------------------------------------------

    def _describe_quorum(self, call: Call) -> None:
        call.answer(self._node.quorum_state())

    def _transfer_leadership(self, call: Call) -> None:
        message: TransferLeadershipRequest = call.message
        self._transferring.handle(call.request, message, call.answer)

    def _status(self, call: Call) -> None:
        call.answer(self._node.status())

    def _describe_caller(self, call: Call) -> None:
        caller, principal = call.request.caller, self._leader.changes.asks_for(call.request)
        call.answer(
            CallerReply(
                principal=principal,
                method=caller.method,
                address=caller.address,
                super_user=principal in self._access_checks.guard.super_users,
                name=self._own_name(caller, principal),
            )
        )

    def _own_name(self, caller: Caller, principal: str) -> str | None:
        """Return the caller's own name; whoever asks for somebody else learns no name."""
        opener = self._read_context.opener
        return opener.name_of(principal) if principal == caller.principal else None

    def _live(self, call: Call) -> None:
        call.answer(HealthReply(healthy=True, reason="the process runs"))

    def _ready(self, call: Call) -> None:
        health = self._node.ready()
        call.reply(200 if health.healthy else 503, health)

    def _metrics(self, call: Call) -> None:
        call.on_reply(Reply(200, self._own_metrics.render(), {"content-type": CONTENT_TYPE}))

    def _openapi_document(self, call: Call) -> None:
        if not self._openapi:
            self._openapi = msgspec.json.encode(openapi_document(self._node.version))
        call.on_reply(Reply(200, self._openapi, {"content-type": JSON}))


def _contained(call: Call, step: Callable[[T], None]) -> Callable[[T], None]:
    """Return a step that may come later, and refuses the request instead of raising."""

    def contained(value: T) -> None:
        request_id = call.request.headers.get("x-logberg-request-id")
        try:
            step(value)
        except LogbergError as error:
            call.refuse(error, request_id)
        except OSError as error:
            call.refuse(unreadable(error), request_id)

    return contained


def begin_trace(tracing: Tracing, route: Route, request: Request) -> RequestTrace | None:
    """Trace a change, or what its caller traces; nothing else, because brokers ask all the time."""
    headers = request.headers
    if not route.changes and "traceparent" not in headers:
        return None
    request_id = headers.get("x-logberg-request-id", "")
    return tracing.begin(request.method, route.path, headers, request_id)


def _with_new_names(request: Request) -> Request:
    """Return the request with new header names. Raises LogbergError if a header has two values."""
    if not has_old_names(request.headers):
        return request
    check_names(request.headers)
    return msgspec.structs.replace(request, headers=with_new_names(request.headers))
