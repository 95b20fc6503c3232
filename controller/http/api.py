"""Dispatches HTTP requests: routes, formats, errors.

`Api.handle(request, reply)` answers every request exactly once, now or later. It knows nothing of
connections.

- Bodies are JSON or MessagePack, by `content-type`, and for the answer by `accept`.
- An answer whose status isn't 200 has an `ErrorReply` as its body. There are two exceptions:
  MetadataFetch has its error in the field `error`, and a snapshot's range has status 206.
- A request may name its version. Every answer says which versions the controller reads
  (`metadata.messages.versions`).
- A change takes the headers `x-logberg-request-id`, `-reason`, `-client-id` and `-on-behalf-of`.
  Release 0.1 calls them `x-quorate-…` (`metadata.messages.header_names`).
"""

from collections.abc import Callable, Generator, Mapping
from math import ceil
from typing import Any

import msgspec

from controller.config import ControllerConfig
from controller.http.clients.answers import CHANGES, READS
from controller.http.clients.asked import Asked, ReadContext
from controller.http.degraded import RETRY_AFTER_S, ask_of, retry_after_ms
from controller.http.fetch_content import unreadable
from controller.http.metadata_fetch import MetadataFetch
from controller.http.metrics import ControllerMetrics
from controller.http.node_view import NodeView
from controller.http.openapi import openapi_document
from controller.http.queries import (
    Queries,
    broker_id_of,
    list_brokers,
    list_features,
    list_topics,
    one_broker,
    one_topic,
    yes_or_no,
)
from controller.http.route import Route
from controller.http.routes import RouteMatch, find_route
from controller.http.snapshot_ranges import SnapshotRanges
from controller.http.watch import Watch
from controller.leader.changes import RequestedChange
from controller.managers.features import update_features
from controller.managers.sweep import Sweep, in_rounds
from controller.result import Decided
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import (
    CreateTopicsReply,
    CreateTopicsRequest,
    DeleteTopicsReply,
    DeleteTopicsRequest,
    HealthReply,
    MetadataFetchReply,
    MetadataFetchRequest,
    UnregisterBrokerReply,
    UpdateFeaturesReply,
    UpdateFeaturesRequest,
    error_reply,
)
from metadata.messages.header_names import (
    check_names,
    knows_new_names,
    with_both_names,
    with_new_names,
)
from metadata.messages.parts import GROUP, LongMessage, encode_in_parts
from metadata.messages.versions import (
    RANGE_HEADER,
    TOLERANT,
    UNVERSIONED,
    range_text,
    version_of,
)
from metadata.messages.wire import JSON, canonical, check_density, decode, encode, reply_type
from runtime.clock import Clock
from runtime.http.requests import Reply, Request, whole
from runtime.metrics import CONTENT_TYPE

OnReply = Callable[[Reply], None]


class _Call:
    """One request, and the way to its one reply."""

    def __init__(
        self,
        node: NodeView,
        wall_ms: Callable[[], int],
        request: Request,
        found: RouteMatch,
        on_reply: OnReply,
    ) -> None:
        self.node = node
        self.wall_ms = wall_ms
        self.request = request
        self.arguments: Mapping[str, str] = found.arguments
        self.on_reply = on_reply
        self.content_type = request.headers.get("content-type", "")
        self.format = reply_type(request.headers.get("accept", ""), self.content_type)
        self.tolerant = False
        """Ignore unknown fields of the body. The request's version decides this."""

    def body(self, message_type: type[Any]) -> Any:
        """Decode the request's message. Raises LogbergError."""
        check_density(self.request.body, self.content_type)
        return decode(message_type, self.request.body, self.content_type, tolerant=self.tolerant)

    def answer(
        self,
        outcome: msgspec.Struct | LongMessage | LogbergError,
        request_id: str | None = None,
    ) -> None:
        """Reply with a message, which may be a long one, or an error."""
        if isinstance(outcome, LogbergError):
            self.refuse(outcome, request_id)
        elif isinstance(outcome, LongMessage):
            parts = encode_in_parts(outcome, self.format)
            reply = Reply(200, b"", self._headers(None, None), parts)
            # So few entries fit into one part.
            self.on_reply(whole(reply) if outcome.length <= GROUP else reply)
        else:
            self.reply(200, outcome, request_id)

    def answer_later(self, outcome: Generator[None, None, LongMessage] | LogbergError) -> None:
        """Reply with a message that is found in steps, or an error."""
        if isinstance(outcome, LogbergError):
            self.refuse(outcome)
            return

        def parts() -> Generator[bytes, None, None]:
            # Each step yields no bytes. The sender then serves other connections.
            while True:
                try:
                    next(outcome)
                except StopIteration as found:
                    message = found.value
                    break
                yield b""
            yield from encode_in_parts(message, self.format)

        self.on_reply(Reply(200, b"", self._headers(None, None), parts()))

    def reply(
        self,
        status: int,
        message: msgspec.Struct,
        request_id: str | None = None,
        code: ErrorCode | None = None,
    ) -> None:
        headers = self._headers(code, request_id)
        self.on_reply(Reply(status, encode(message, self.format), headers))

    def refuse(self, error: LogbergError, request_id: str | None = None) -> None:
        leader, url = self.node.leadership()
        from_future = error.code is ErrorCode.REQUEST_FROM_FUTURE
        body = error_reply(
            error,
            leader_id=leader.leader,
            leader_epoch=leader.epoch,
            leader_url=url,
            request_id=request_id,
            server_time_ms=self.wall_ms() if from_future else None,
            retry_after_ms=retry_after_ms(error.code),
        )
        headers = self._headers(error.code, request_id)
        if error.retry_after_ms is not None:
            headers["retry-after"] = str(ceil(error.retry_after_ms / 1000))
        if url is not None:
            headers["x-logberg-leader"] = url
        self.on_reply(Reply(error.code.status, encode(body, self.format), headers))

    def _headers(self, code: ErrorCode | None, request_id: str | None) -> dict[str, str]:
        headers = {"content-type": self.format}
        if request_id is not None:
            headers["x-logberg-request-id"] = request_id
        if code is not None and code in RETRY_AFTER_S:
            headers["retry-after"] = str(RETRY_AFTER_S[code])
        return headers


class Api:
    """The dispatcher. `_create_topics` handles the route named create_topics, and so on."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        node: NodeView,
        metrics: ControllerMetrics,
        fetch: MetadataFetch,
        queries: Queries,
        watch: Watch,
        snapshots: SnapshotRanges,
    ) -> None:
        self._newest_version = config.newest_version
        self._clock = clock
        self._node = node
        self._leader = node.leader
        self._own_metrics = metrics
        self._fetch = fetch
        self._queries = queries
        self._read_context = ReadContext(config, queries.pages)
        self._watch = watch
        self._snapshots = snapshots
        self._openapi = b""

    def handle(self, request: Request, on_reply: OnReply) -> None:
        """Answer a request exactly once, now or later."""
        found = find_route(request.method, request.path)
        operation = "unknown" if found.route is None else found.route.name
        arrived = self._clock.monotonic()
        new_names = knows_new_names(request.headers)

        def answer(reply: Reply) -> None:
            self._own_metrics.answered(operation, reply.status, self._clock.monotonic() - arrived)
            reply = self._with_range(reply)
            on_reply(reply if new_names else _under_both_names(reply))

        call = _Call(self._node, self._clock.wall_ms, request, found, answer)
        try:
            call.request = request = _with_new_names(request)
            if found.route is None:
                self._no_route(call, found)
                return
            version = version_of(request.headers, self._newest_version)
            call.tolerant = version >= TOLERANT
            if not found.route.always:
                refusal = self._node.refusal(ask_of(found.route, request.query))
                if refusal is not None:
                    raise refusal
            self._carry_out(found.route, call)
        except LogbergError as error:
            call.refuse(error, request.headers.get("x-logberg-request-id"))
        except OSError as error:
            call.refuse(unreadable(error), request.headers.get("x-logberg-request-id"))

    def _carry_out(self, route: Route, call: _Call) -> None:
        """Call what answers a route. Raises LogbergError."""
        if route.name in CHANGES:
            message = None if route.request is None else call.body(route.request)
            asked = Asked(call.request, call.arguments, message)
            change = CHANGES[route.name](self._leader, asked)
            self._leader.changes.submit(call.request, change, self._or_elsewhere(call))
        elif route.name in READS:
            asked = Asked(call.request, call.arguments)
            read, context = READS[route.name], self._read_context
            self._queries.read(call.request, lambda view: read(view, asked, context), call.answer)
        else:
            getattr(self, f"_{route.name}")(call)

    def _with_range(self, reply: Reply) -> Reply:
        """Add which versions of requests this controller reads. Release 0.1 doesn't say."""
        if self._newest_version == UNVERSIONED:
            return reply
        headers = {**reply.headers, RANGE_HEADER: range_text(self._newest_version)}
        return msgspec.structs.replace(reply, headers=headers)

    def _no_route(self, call: _Call, found: RouteMatch) -> None:
        path = call.request.path[:200]
        if not found.allowed:
            raise LogbergError(
                ErrorCode.NOT_FOUND, f"there is no path {path!r}; /v1/openapi.json lists all paths"
            )
        allow = ", ".join(found.allowed)
        inner = call.on_reply
        call.on_reply = lambda reply: inner(
            msgspec.structs.replace(reply, headers={**reply.headers, "allow": allow})
        )
        raise LogbergError(ErrorCode.METHOD_NOT_ALLOWED, f"{path!r} takes {allow}")

    # -- brokers --------------------------------------------------------------------------

    def _metadata_fetch(self, call: _Call) -> None:
        message = call.body(MetadataFetchRequest)

        def done(reply: MetadataFetchReply) -> None:
            code = None if reply.error is None else reply.error.known_code()
            call.reply(200 if code is None else code.status, reply, code=code)

        self._fetch.handle(message, call.request.caller, done)

    def _read_snapshot(self, call: _Call) -> None:
        call.on_reply(self._snapshots.read(call.request, call.arguments["id"]))

    # -- changes --------------------------------------------------------------------------

    def _create_topics(self, call: _Call) -> None:
        message = call.body(CreateTopicsRequest)
        self._leader.changes.submit(
            call.request,
            RequestedChange(
                operation="CreateTopics",
                meaning=lambda: canonical(message),
                reply_type=CreateTopicsReply,
                decide=lambda image: self._leader.topics.create(image, message),
                mutations=lambda _image: self._leader.topics.creates(message),
                dry_run=message.dry_run,
            ),
            self._or_elsewhere(call),
        )

    def _delete_topics(self, call: _Call) -> None:
        self._delete(call, call.body(DeleteTopicsRequest))

    def _delete_topic(self, call: _Call) -> None:
        dry_run = yes_or_no(call.request.query, "dryRun")
        self._delete(call, DeleteTopicsRequest(names=(call.arguments["name"],), dry_run=dry_run))

    def _delete(self, call: _Call, message: DeleteTopicsRequest) -> None:
        self._leader.changes.submit(
            call.request,
            RequestedChange(
                operation="DeleteTopics",
                meaning=lambda: canonical(message),
                reply_type=DeleteTopicsReply,
                decide=lambda image: self._leader.topics.delete(image, message),
                mutations=lambda image: self._leader.topics.deletes(image, message),
                dry_run=message.dry_run,
            ),
            self._or_elsewhere(call),
        )

    def _unregister_broker(self, call: _Call) -> None:
        broker_id = broker_id_of(call.arguments["id"])
        dry_run = yes_or_no(call.request.query, "dryRun")
        force = yes_or_no(call.request.query, "force")

        def unregister(image: MetadataImage, sweep: Sweep | None = None) -> Decided:
            return self._leader.brokers.unregister(image, broker_id, sweep, force=force)

        self._leader.changes.submit(
            call.request,
            RequestedChange(
                operation="UnregisterBroker",
                meaning=bytes,
                reply_type=UnregisterBrokerReply,
                decide=in_rounds(unregister) if not dry_run else unregister,
                in_rounds=not dry_run,
                mutations=lambda image: image.topics.replicas_on(broker_id),
                dry_run=dry_run,
            ),
            self._or_elsewhere(call),
        )

    def _update_features(self, call: _Call) -> None:
        message = call.body(UpdateFeaturesRequest)
        self._leader.changes.submit(
            call.request,
            RequestedChange(
                operation="UpdateFeatures",
                meaning=lambda: canonical(message),
                reply_type=UpdateFeaturesReply,
                decide=lambda image: update_features(image, self._node.voters(), message),
                mutations=lambda _image: 0,
                dry_run=message.dry_run,
            ),
            self._or_elsewhere(call),
        )

    def _or_elsewhere(
        self, call: _Call
    ) -> Callable[[msgspec.Struct | LongMessage | LogbergError, str | None], None]:
        """Return a function that answers. If this controller doesn't lead, it says whom to ask."""

        def answer(
            outcome: msgspec.Struct | LongMessage | LogbergError, request_id: str | None
        ) -> None:
            if isinstance(outcome, LogbergError) and outcome.code is ErrorCode.NOT_CONTROLLER:
                outcome = self._node.not_here()
            call.answer(outcome, request_id)

        return answer

    # -- reads ----------------------------------------------------------------------------

    def _list_topics(self, call: _Call) -> None:
        query, pages = call.request.query, self._queries.pages
        self._queries.read(call.request, lambda view: list_topics(view, query, pages), call.answer)

    def _describe_topic(self, call: _Call) -> None:
        name, query, pages = call.arguments["name"], call.request.query, self._queries.pages
        self._queries.read(
            call.request, lambda view: one_topic(view, name, query, pages), call.answer
        )

    def _list_brokers(self, call: _Call) -> None:
        query, pages = call.request.query, self._queries.pages
        self._queries.read(call.request, lambda view: list_brokers(view, query, pages), call.answer)

    def _describe_broker(self, call: _Call) -> None:
        text = call.arguments["id"]
        self._queries.read(call.request, lambda view: one_broker(view, text), call.answer)

    def _list_features(self, call: _Call) -> None:
        voters = self._node.voters()
        self._queries.read(call.request, lambda view: list_features(view, voters), call.answer)

    def _read_log(self, call: _Call) -> None:
        self._watch.read(call.request, call.answer_later)

    # -- the node -------------------------------------------------------------------------

    def _describe_quorum(self, call: _Call) -> None:
        call.answer(self._node.quorum_state())

    def _status(self, call: _Call) -> None:
        call.answer(self._node.status())

    def _live(self, call: _Call) -> None:
        call.answer(HealthReply(healthy=True, reason="the process runs"))

    def _ready(self, call: _Call) -> None:
        health = self._node.ready()
        call.reply(200 if health.healthy else 503, health)

    def _metrics(self, call: _Call) -> None:
        call.on_reply(Reply(200, self._own_metrics.render(), {"content-type": CONTENT_TYPE}))

    def _openapi_document(self, call: _Call) -> None:
        if not self._openapi:
            self._openapi = msgspec.json.encode(openapi_document(self._node.version))
        call.on_reply(Reply(200, self._openapi, {"content-type": JSON}))


def _with_new_names(request: Request) -> Request:
    """Return the request with new header names. Raises LogbergError if a header has two values."""
    check_names(request.headers)
    headers = with_new_names(request.headers)
    if headers is request.headers:
        return request
    return msgspec.structs.replace(request, headers=headers)


def _under_both_names(reply: Reply) -> Reply:
    return msgspec.structs.replace(reply, headers=with_both_names(reply.headers))
