"""Registers brokers and takes their heartbeats, as the route MetadataFetch does it for agents.

Rule: a Kafka broker fetches the log by Raft's own request. So what is sent here to MetadataFetch
wants no batches: it names the end of the committed image as the offset from which to fetch.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from kafka_listener.asking.asking import AskRoute, error_of
from kafka_listener.asking.request import KafkaRequest
from kafka_listener.brokers.controller_view import ControllerView
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import MetadataFetchReply, MetadataFetchRequest
from metadata.messages.wire import MSGPACK, decode_fetch_reply, encode
from runtime.http.requests import Reply, Request, Unreachable

OnFetched = Callable[[MetadataFetchReply | LogbergError], None]
_PATH: Final = "/v1/metadata/fetch"
_HEADERS: Final = {"content-type": MSGPACK, "accept": MSGPACK}


class BrokerContact:
    """Asks MetadataFetch on this controller."""

    def __init__(
        self,
        controller: ControllerView,
        ask: AskRoute,
        cluster_id: str,
    ) -> None:
        """`ask` is the controller's `handle`."""
        self._controller = controller
        self._ask = ask
        self.cluster_id = cluster_id

    def send(self, kafka: KafkaRequest, message: MetadataFetchRequest, then: OnFetched) -> None:
        """Ask for the caller of a Kafka request. `then` gets the reply, or why there is none."""
        image = self._controller.image
        whole = msgspec.structs.replace(
            message, fetched_offset=image.offset, fetched_epoch=image.epoch, max_bytes=0
        )
        request = Request(
            "POST", _PATH, encode(whole, MSGPACK), headers=_HEADERS, caller=kafka.caller
        )
        self._ask(request, lambda reply: then(_read(reply)))


def _read(reply: Reply | Unreachable) -> MetadataFetchReply | LogbergError:
    if isinstance(reply, Unreachable):
        return LogbergError(ErrorCode.NOT_CONTROLLER, reply.reason)
    try:
        said = decode_fetch_reply(
            reply.status, reply.body, reply.headers.get("content-type", MSGPACK)
        )
        if said.error is not None:
            return error_of(said.error)
    except (LogbergError, ValueError) as error:
        return LogbergError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    return said
