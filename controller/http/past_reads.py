"""Answers the routes that read the state from any image, without a controller: for past states.

Rule: the answer is what the active controller would have answered at that offset, by the same
functions. What is not in the log is not known: which brokers were heard from, and the controllers'
own settings. Broker states are those of the registrations, and effective configs end with Kafka's
defaults.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from controller.config import ControllerConfig
from controller.http.clients.answers import READS as CLIENT_READS
from controller.http.clients.asked import Asked, ReadContext
from controller.http.describe_configs import list_configs, one_config
from controller.http.node_view import View
from controller.http.pages import Pages, token_text
from controller.http.queries import (
    list_brokers,
    list_features,
    list_topics,
    one_broker,
    one_topic,
)
from controller.http.replicas.answers import READS as REPLICA_READS
from controller.http.replicas.answers import READS_IN_STEPS
from controller.http.routes import find_route
from controller.managers.topic_rules import defaults_of
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages.parts import LongMessage, encode_in_parts
from metadata.messages.wire import JSON, encode
from metadata.steps import finished
from runtime.http.requests import ANONYMOUS, Request


class _OneImage(Pages):
    """Pages of an image that its reader keeps."""

    def __init__(self) -> None:
        """Keep nothing."""

    def token(self, image: MetadataImage, of: str, last: str | int) -> str:
        return token_text(image, of, last)


_READS: Final[Mapping[str, Callable[[View, Asked, ReadContext], Any]]] = {
    "list_topics": lambda view, asked, on: list_topics(view, asked.request.query, on.pages),
    "describe_topic": lambda view, asked, on: one_topic(
        view, asked.arguments["name"], asked.request.query, on.pages
    ),
    "list_brokers": lambda view, asked, on: list_brokers(view, asked.request.query, on.pages),
    "describe_broker": lambda view, asked, _on: one_broker(view, asked.arguments["id"]),
    "list_features": lambda view, _asked, _on: list_features(
        view, tuple(view.image.cluster.controllers)
    ),
    "list_configs": lambda view, asked, on: list_configs(view, asked.request.query, on.pages),
    "describe_config": lambda view, asked, on: one_config(
        view, asked.arguments["type"], asked.arguments["name"], defaults_of(on.config)
    ),
    **CLIENT_READS,
    # Why a broker may not serve is known from its heartbeats, which are not in the log.
    **{name: read for name, read in REPLICA_READS.items() if name != "explain_broker"},
}
_NO_SETTINGS: Final = ControllerConfig(cluster_id="", node_id=0, default_replication_factor=1)


def read_past(image: MetadataImage, path: str, query: Mapping[str, str]) -> bytes:
    """Return the answer of `GET path` from an image, as JSON. Raises LogbergError."""
    found = find_route("GET", path)
    route = found.route
    if route is None or route.name not in {**_READS, **READS_IN_STEPS}:
        raise LogbergError(ErrorCode.NOT_FOUND, f"{path}: no such state is in the log")
    view = View(image, heard=None, age_ms=None)
    asked = Asked(Request("GET", path, b"", query, {}, ANONYMOUS), found.arguments)
    context = ReadContext(_NO_SETTINGS, _OneImage())
    if route.name in READS_IN_STEPS:
        answer: Any = finished(READS_IN_STEPS[route.name](view, asked, context))
    else:
        answer = _READS[route.name](view, asked, context)
    if isinstance(answer, LongMessage):
        return b"".join(encode_in_parts(answer, JSON))
    return encode(answer, JSON)
