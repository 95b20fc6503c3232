"""The agent's own HTTP interface: health, metrics, metadata for clients, forwarding.

Rule: the agent answers clients only while the broker may serve. Otherwise it answers 503, because
its metadata may be old. The metadata for clients names no fenced brokers.

Where rights are enforced, the metadata names only topics that the caller may describe (`access`).
A person who has a pseudonym is judged by that (`people`).
Each of the agent's own paths says to whom it is open.

The agent forwards all other requests under /v1 to the active controller, with the caller's
principal (KIP-590). So a client needs to know only brokers. What is under /v1/host is for the host
alone (`host_api`).
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from broker_agent.access import Shows, TopicAccess
from broker_agent.agent import AgentCore
from broker_agent.forwarding import Forwarding
from broker_agent.health import health_of
from broker_agent.host_api import PREFIX, HostApi
from broker_agent.metrics import registry_of
from broker_agent.people import AgentPeople
from broker_agent.replies import answer, refused
from broker_agent.token_callers import TokenCallers
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages.clients import ClientBroker, ClientMetadata, ClientPartition, ClientTopic
from metadata.messages.parts import LongMessage, encode_in_parts
from metadata.messages.wire import JSON, encode, reply_type
from metadata.uuids import uuid_text
from runtime.clock import Clock
from runtime.http.requests import UNIX_SOCKET, Caller, Reply, Request, Requester
from runtime.metrics import CONTENT_TYPE
from runtime.randomness import Random

OnReply = Callable[[Reply], None]
_LOOKED_AT = 64
"""Names of topics that are looked up between two pieces of an answer."""
REMEMBERED_MAX = 2_000
"""For up to so many partitions, the agent encodes the clients' metadata once per image and keeps
the bytes. For more, it encodes them anew for each request, in parts."""


class Audience(Enum):
    """To whom one of the agent's own paths is open."""

    EVERYBODY = auto()
    SHOWN = auto()
    """To everybody, and each sees what its rights show."""


class OwnPath(NamedTuple):
    """One of the agent's own paths."""

    open_to: Audience
    answer: Callable[[Request, Shows | None], Reply]
    """Gets which topics the caller may see; None: all of them."""


class AgentApi:
    """Answers requests to an agent."""

    def __init__(
        self,
        agent: AgentCore,
        requester: Requester,
        *,
        clock: Clock,
        random: Random,
        people: AgentPeople,
        forward_anonymous: bool = False,
        shows_certificate: bool = False,
        host: HostApi | None = None,
    ) -> None:
        """`forward_anonymous`: also forward requests of callers that are not authenticated.

        `shows_certificate`: the requester's TLS connections show this broker's certificate.
        `people` says by which principal a caller is judged. `host` answers a host in another
        process; None: there is none.
        """
        self._agent = agent
        self._host = host
        self._forwarding = Forwarding(
            agent,
            requester,
            clock,
            random,
            anonymous=forward_anonymous,
            shows_certificate=shows_certificate,
        )
        self._access = TopicAccess(agent.config)
        self._token_callers = TokenCallers(self._forwarding, clock)
        self._people = people
        self.registry = registry_of(agent)
        """The agent's metrics; a listener beside this interface adds its own."""
        self._shown: MetadataImage | None = None
        self._encoded: dict[str, bytes] = {}
        self._own: dict[str, OwnPath] = {
            "/health/live": OwnPath(Audience.EVERYBODY, self._live),
            "/health/ready": OwnPath(Audience.EVERYBODY, self._ready),
            # The same as /health/ready says.
            "/v1/agent": OwnPath(Audience.EVERYBODY, self._describe),
            "/v1/metadata": OwnPath(Audience.SHOWN, self._metadata),
            "/metrics": OwnPath(Audience.EVERYBODY, self._metrics),
        }

    @property
    def own_paths(self) -> tuple[str, ...]:
        """The paths that the agent answers itself, to authenticated and other callers."""
        return tuple(self._own)

    def handle(self, request: Request, reply: OnReply) -> None:
        """Answer one request. Calls `reply` exactly once, now or later."""
        own = self._own.get(request.path)
        if own is not None and request.method == "GET":
            self._answer(own, request, reply)
        elif own is not None:
            said = _error(request, ErrorCode.METHOD_NOT_ALLOWED, f"{request.path} takes GET")
            reply(msgspec.structs.replace(said, headers={**said.headers, "allow": "GET"}))
        elif request.path.startswith(PREFIX):
            self._ask_for_host(request, reply)
        elif request.path.startswith("/v1/"):
            self._forward(request, reply)
        else:
            path = request.path[:200]
            reply(_error(request, ErrorCode.NOT_FOUND, f"there is no {path!r} here"))

    def _answer(self, own: "OwnPath", request: Request, reply: OnReply) -> None:
        # The host beside the agent is the broker itself: it sees everything.
        from_host = request.caller.method == UNIX_SOCKET
        if own.open_to is Audience.EVERYBODY or from_host or not self._access.enforced:
            reply(own.answer(request, None))
            return

        def then(caller: Caller | LogbergError) -> None:
            try:
                if isinstance(caller, LogbergError):
                    raise caller
                principal = self._people.principal_of(caller)
            except LogbergError as error:
                reply(refused(request, error))
                return
            shows = self._access.shown_to(self._agent.image, principal, caller.address)
            reply(own.answer(request, shows))

        self._token_callers.caller_of(request, then)

    def _live(self, request: Request, _shows: Shows | None) -> Reply:
        return answer(request, {"live": True})

    def _ready(self, request: Request, _shows: Shows | None) -> Reply:
        health = health_of(self._agent)
        return answer(request, health, status=200 if health.ready else 503)

    def _describe(self, request: Request, _shows: Shows | None) -> Reply:
        return answer(request, health_of(self._agent))

    def _metrics(self, _request: Request, _shows: Shows | None) -> Reply:
        return Reply(200, self.registry.render(), {"content-type": CONTENT_TYPE})

    def _metadata(self, request: Request, shows: Shows | None) -> Reply:
        if not self._agent.may_serve():
            return self._not_serving(request)
        media = reply_type(request.headers.get("accept", ""), JSON)
        image = self._agent.image
        if shows is not None:
            return Reply(200, b"", {"content-type": media}, _shown_parts(image, shows, media))
        if len(image.topics.partitions) > REMEMBERED_MAX:
            # Encoded while it is sent: encoding all at once would delay the heartbeats.
            names = image.topics.names
            parts = encode_in_parts(long_clients_view(image, names, len(names)), media)
            return Reply(200, b"", {"content-type": media}, parts)
        if image is not self._shown:
            self._shown, self._encoded = image, {}
        if media not in self._encoded:
            self._encoded[media] = encode(clients_view(image), media)
        return Reply(200, self._encoded[media], {"content-type": media})

    def _ask_for_host(self, request: Request, reply: OnReply) -> None:
        if self._host is None:
            why = f"this agent has no host_socket, so nobody may ask for {PREFIX}"
            reply(_error(request, ErrorCode.NOT_FOUND, why))
            return
        self._host.handle(request, reply)

    def _forward(self, request: Request, reply: OnReply) -> None:
        if request.caller.method == UNIX_SOCKET:
            # A login of this machine is no user of the cluster.
            why = f"over the host's socket only {PREFIX} and the agent's own paths are answered"
            reply(_error(request, ErrorCode.NOT_FOUND, f"{why}; ask the agent's port"))
            return
        if not self._agent.may_serve():
            reply(self._not_serving(request))
            return
        refusal = self._forwarding.refusal(request)
        if refusal is not None:
            reply(refused(request, refusal))
            return
        self._forwarding.forward(
            request, reply, lambda error, request_id: reply(refused(request, error, request_id))
        )

    def _not_serving(self, request: Request) -> Reply:
        why = f"this broker is {self._agent.state.value}: {self._agent.reason}; ask another"
        return _error(request, ErrorCode.BROKER_NOT_AVAILABLE, why)


def clients_view(image: MetadataImage) -> ClientMetadata:
    """Return the metadata for the brokers' clients: fenced brokers are left out."""
    topics = tuple(
        _clients_topic(image, name, tuple(_clients_partitions(image, image.topics.by_name[name])))
        for name in image.topics.names
    )
    return msgspec.structs.replace(_without_topics(image), topics=topics)


def _shown_parts(image: MetadataImage, shows: Shows, media: str) -> Generator[bytes, None, None]:
    """Yield the metadata for a client that may see some topics only."""
    names: list[str] = []
    for count, name in enumerate(image.topics.names, start=1):
        if shows(name):
            names.append(name)
        if count % _LOOKED_AT == 0:
            # No bytes: the sender then serves other connections.
            yield b""
    yield from encode_in_parts(long_clients_view(image, names, len(names)), media)


def long_clients_view(image: MetadataImage, names: Iterable[str], count: int) -> LongMessage:
    """Return what `clients_view` returns of these topics, to be encoded in parts."""
    topics = (
        LongMessage(
            _clients_topic(image, name, ()),
            "partitions",
            _clients_partitions(image, image.topics.by_name[name]),
            len(image.topics.ids_of(image.topics.by_name[name])),
        )
        for name in names
    )
    return LongMessage(_without_topics(image), "topics", topics, count)


def _without_topics(image: MetadataImage) -> ClientMetadata:
    return ClientMetadata(
        offset=image.offset if image.transaction is None else image.transaction.offset,
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
        topics=(),
    )


def _clients_topic(
    image: MetadataImage, name: str, partitions: tuple[ClientPartition, ...]
) -> ClientTopic:
    topic_id = uuid_text(image.topics.by_name[name])
    return ClientTopic(name=name, topic_id=topic_id, partitions=partitions)


def _clients_partitions(image: MetadataImage, topic_id: bytes) -> Iterator[ClientPartition]:
    return (
        ClientPartition(
            partition=number,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            replicas=partition.replicas,
            isr=partition.isr,
        )
        for number, partition in image.topics.partitions_of(topic_id)
    )


def _error(request: Request, code: ErrorCode, message: str) -> Reply:
    return refused(request, LogbergError(code, message))
