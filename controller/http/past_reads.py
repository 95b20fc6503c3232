"""Answers the routes that read the state from any image, without a controller: for past states.

Rule: the answer is what the active controller would have answered at that offset, by the same
functions. What is not in the log is not known: which brokers were heard from, and the controllers'
own settings. Broker states are those of the registrations. Where a controller's own setting could
have decided a config, the source says so, unless the caller gives these settings.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec

from controller.config import ControllerConfig
from controller.http.bridge.answers import READS as BRIDGE_READS
from controller.http.clients.answers import READS as CLIENT_READS
from controller.http.clients.answers import READS_IN_STEPS as CLIENT_READS_IN_STEPS
from controller.http.clients.asked import Asked, ReadContext
from controller.http.coordination.answers import READS as COORDINATION_READS
from controller.http.declared.answers import READS as DECLARED_READS
from controller.http.describe_configs import list_configs, one_config
from controller.http.head_keys import READS as HEAD_KEY_READS
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
from controller.http.replicas.answers import READS_IN_STEPS as REPLICA_READS_IN_STEPS
from controller.http.replicas.explain import explain_past_broker
from controller.http.routes import find_route
from controller.http.watch import batch_in_words
from controller.managers.topic_rules import defaults_of
from ledger.batch import Batch
from metadata.configs.definitions import KINDS, definition
from metadata.configs.effective import ConfigSource, OwnConfigs
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import ConfigEntry, ReadRecordsReply
from metadata.messages.parts import LongMessage, encode_in_parts
from metadata.messages.wire import JSON, encode
from metadata.records import ConfigResourceType
from metadata.steps import finished
from runtime.http.requests import ANONYMOUS, Request

UNKNOWN_OWN: Final = (
    f"{ConfigSource.DEFAULT} (Kafka's; a controller's own settings are not in the log)"
)
"""The source of a value that a controller's own setting would go before."""
_LOG_BYTES: Final = 1024 * 1024


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
    **BRIDGE_READS,
    **CLIENT_READS,
    **COORDINATION_READS,
    **REPLICA_READS,
    **DECLARED_READS,
    **HEAD_KEY_READS,
    "explain_broker": explain_past_broker,
}
_READS_IN_STEPS: Final = {**CLIENT_READS_IN_STEPS, **REPLICA_READS_IN_STEPS}
_NOBODY: Final = -1
"""The number of no node: whose settings they are is not known."""


def read_past(
    image: MetadataImage, path: str, query: Mapping[str, str], own: OwnConfigs | None = None
) -> bytes:
    """Return the answer of `GET path` from an image, as JSON. Raises LogbergError.

    `own`: the controllers' own settings at that time; None: they are not known.
    """
    found = find_route("GET", path)
    route = found.route
    if route is None or route.name not in {**_READS, **_READS_IN_STEPS}:
        raise LogbergError(ErrorCode.NOT_FOUND, f"{path}: no such state is in the log")
    view = View(image, heard=None, age_ms=None)
    asked = Asked(Request("GET", path, b"", query, {}, ANONYMOUS), found.arguments)
    context = ReadContext(_settings(own), _OneImage())
    if route.name in _READS_IN_STEPS:
        answer: Any = finished(_READS_IN_STEPS[route.name](view, asked, context))
    else:
        answer = _READS[route.name](view, asked, context)
    if own is None and route.name == "describe_config":
        answer = _with_unknown_settings(answer, asked, image)
    if isinstance(answer, LongMessage):
        return b"".join(encode_in_parts(answer, JSON))
    return encode(answer, JSON)


class PastLog(Protocol):
    """A log that can be read, such as `ledger.reader.LedgerReader`."""

    @property
    def log_start(self) -> int:
        """The first offset that can be read."""

    def batches(self, start: int | None = None, end: int | None = None) -> Iterator[Batch]:
        """Yield the batches from the one that holds `start`; the last begins before `end`."""


def read_past_log(log: PastLog, image: MetadataImage, offset: int) -> bytes:
    """Return the answer of `GET /v1/log?format=json`, as JSON, as if the log ended at an image.

    About 1 MiB of batches, but at least one if there is one. Raises LedgerError.
    """
    words, size, following = [], 0, offset
    for batch in log.batches(offset, image.offset):
        words.append(batch_in_words(batch))
        size, following = size + len(batch.encoded), batch.header.end_offset
        if size >= _LOG_BYTES:
            break
    head = ReadRecordsReply(offset, following, log.log_start, image.offset, epoch=image.epoch)
    return b"".join(encode_in_parts(LongMessage(head, "batches", iter(words), len(words)), JSON))


def _settings(own: OwnConfigs | None) -> ControllerConfig:
    values = OwnConfigs({}, _NOBODY) if own is None else own
    return ControllerConfig(
        cluster_id="",
        node_id=values.node_id,
        default_replication_factor=1,
        configs=values.values,
    )


def _with_unknown_settings(answer: LongMessage, asked: Asked, image: MetadataImage) -> LongMessage:
    """Say at each default of a config whether a controller's own setting could go before it."""
    kind, name = asked.arguments["type"], asked.arguments["name"]
    controller = name.isdecimal() and int(name) in image.cluster.controllers
    entries = (_marked(KINDS[kind], entry, controller=controller) for entry in answer.entries)
    return answer._replace(entries=entries)


def _marked(kind: ConfigResourceType, entry: ConfigEntry, *, controller: bool) -> ConfigEntry:
    """Mark a default if a controller's own setting would go before it."""
    known = definition(kind, entry.name)
    settable = controller if kind == ConfigResourceType.BROKER else bool(known and known.synonyms)
    if not settable:
        return entry
    synonyms = tuple(
        msgspec.structs.replace(each, source=_source(each.source)) for each in entry.synonyms
    )
    return msgspec.structs.replace(entry, source=_source(entry.source), synonyms=synonyms)


def _source(source: str) -> str:
    return UNKNOWN_OWN if source == ConfigSource.DEFAULT else source
