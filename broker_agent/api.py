"""The agent's own HTTP interface: health, the metadata clients should see, forwarding.

Rule: metadata is answered only while the broker may serve; a fenced broker says so (503) rather
than hand out a view that may be old. Fenced brokers are left out of what clients see.

Everything under /v1 that is not the agent's own goes to the active controller as it came, with
the caller's principal beside it (KIP-590), so a client needs to know brokers only.
"""

from collections.abc import Callable

from broker_agent.agent import AgentCore
from broker_agent.health import health_of
from broker_agent.metrics import render
from metadata.errors import ErrorCode, QuorateError
from metadata.image import MetadataImage
from metadata.messages.clients import ClientBroker, ClientMetadata, ClientPartition, ClientTopic
from metadata.messages.errors import error_reply
from metadata.messages.wire import JSON, encode, reply_type
from metadata.uuids import uuid_text
from runtime.requests import Reply, Request, Requester, Unreachable

OnReply = Callable[[Reply], None]
_FORWARD_LIMIT_S = 30.0
_PASSED_ON = ("content-type", "accept", "x-quorate-request-id", "x-quorate-reason")


class AgentApi:
    """Answers requests to an agent."""

    def __init__(self, agent: AgentCore, requester: Requester) -> None:
        self._agent = agent
        self._requester = requester
        self._own: dict[tuple[str, str], Callable[[Request], Reply]] = {
            ("GET", "/health/live"): self._live,
            ("GET", "/health/ready"): self._ready,
            ("GET", "/v1/agent"): self._describe,
            ("GET", "/v1/metadata"): self._metadata,
            ("GET", "/metrics"): self._metrics,
        }

    def handle(self, request: Request, reply: OnReply) -> None:
        """Answer one request."""
        own = self._own.get((request.method, request.path))
        if own is not None:
            reply(own(request))
        elif request.path.startswith("/v1/"):
            self._forward(request, reply)
        else:
            reply(
                _error(
                    request, ErrorCode.NOT_FOUND, f"{request.method} {request.path}: no such page"
                )
            )

    def _live(self, request: Request) -> Reply:
        return _answer(request, {"live": True})

    def _ready(self, request: Request) -> Reply:
        health = health_of(self._agent)
        return _answer(request, health, status=200 if health.ready else 503)

    def _describe(self, request: Request) -> Reply:
        return _answer(request, health_of(self._agent))

    def _metrics(self, request: Request) -> Reply:
        return Reply(200, render(self._agent), {"content-type": "text/plain; version=0.0.4"})

    def _metadata(self, request: Request) -> Reply:
        if not self._agent.may_serve():
            why = f"this broker is {self._agent.state.value}: {self._agent.reason}; ask another"
            return _error(request, ErrorCode.BROKER_NOT_AVAILABLE, why)
        return _answer(request, clients_view(self._agent.image))

    def _forward(self, request: Request, reply: OnReply) -> None:
        headers = {key: value for key, value in request.headers.items() if key in _PASSED_ON}
        headers["x-quorate-on-behalf-of"] = request.caller.principal
        forwarded = Request(request.method, request.path, request.body, request.query, headers)

        def answered(answer: Reply | Unreachable) -> None:
            if isinstance(answer, Unreachable):
                reply(
                    _error(
                        request,
                        ErrorCode.NO_QUORUM,
                        f"the controller can't be reached ({answer.reason}); try again",
                    )
                )
            else:
                reply(answer)

        self._requester.request(self._agent.controller_url, forwarded, answered, _FORWARD_LIMIT_S)


def clients_view(image: MetadataImage) -> ClientMetadata:
    """Return what clients of the brokers should see: fenced brokers are left out."""
    topics = []
    for name in sorted(image.topics.by_name):
        topic_id = image.topics.by_name[name]
        topics.append(
            ClientTopic(
                name=name,
                topic_id=uuid_text(topic_id),
                partitions=tuple(
                    ClientPartition(
                        partition=number,
                        leader=partition.leader,
                        leader_epoch=partition.leader_epoch,
                        replicas=partition.replicas,
                        isr=partition.isr,
                    )
                    for number, partition in image.topics.partitions_of(topic_id)
                ),
            )
        )
    return ClientMetadata(
        offset=image.offset,
        epoch=image.epoch,
        brokers=tuple(
            ClientBroker(
                broker_id=broker.broker_id,
                rack=broker.rack,
                endpoints={point.name: f"{point.host}:{point.port}" for point in broker.end_points},
            )
            for broker in image.cluster.brokers.values()
            if not broker.fenced
        ),
        topics=tuple(topics),
    )


def _answer(request: Request, value: object, status: int = 200) -> Reply:
    media = reply_type(request.headers.get("accept", ""), JSON)
    return Reply(status, encode(value, media), {"content-type": media})


def _error(request: Request, code: ErrorCode, message: str) -> Reply:
    return _answer(request, error_reply(QuorateError(code, message)), status=code.status)
