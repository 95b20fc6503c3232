"""Configs. `GET` and `PATCH /v1/configs` and `/v1/configs/<type>/<name>` (KIP-133, 226, 339).

Rule: the controller decides each resource of a request by itself, and the results have the order of
the request. The changes of all resources that were accepted are one atomic change.
"""

from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta

from metadata.messages.errors import ErrorReply
from metadata.messages.message import Count, ReplyMessage, RequestMessage

CONFIGS_PER_REQUEST: Final = 10_000
CLUSTER_DEFAULT: Final = "default"
"""The name of the default of all brokers in requests. In the log its name is empty."""


class ConfigOperation(StrEnum):
    """What to do with one key."""

    SET = "set"
    DELETE = "delete"
    """Delete the key, so that its default applies; `value` is ignored."""
    APPEND = "append"
    """Add to a list the entries that it doesn't have."""
    SUBTRACT = "subtract"
    """Remove entries from a list."""


class ConfigChange(RequestMessage, frozen=True):
    """One operation on one key. A request has at most one for each key."""

    name: Annotated[str, Meta(min_length=1, max_length=1000)]
    value: str | None = None
    operation: ConfigOperation = ConfigOperation.SET


_Changes = Annotated[tuple[ConfigChange, ...], Meta(min_length=1, max_length=CONFIGS_PER_REQUEST)]


class ConfigResourceChange(RequestMessage, frozen=True):
    """The operations on one resource: all of them, or none."""

    resource_type: str
    """topic, broker, group or client-metrics."""
    resource_name: str
    """`default` with broker: the default of all brokers."""
    configs: _Changes


class AlterConfigsRequest(RequestMessage, frozen=True):
    """Change the configs of these resources."""

    resources: Annotated[
        tuple[ConfigResourceChange, ...], Meta(min_length=1, max_length=CONFIGS_PER_REQUEST)
    ]
    dry_run: bool = False
    """Decide and answer, with the records, but write nothing (Kafka's validateOnly)."""


class AlterConfigRequest(RequestMessage, frozen=True):
    """Change the configs of the resource that the path names."""

    configs: _Changes
    dry_run: bool = False


class AlteredConfigs(ReplyMessage, frozen=True):
    """The result for one resource of a request."""

    resource_type: str
    resource_name: str
    error: ErrorReply | None = None
    changed: tuple[str, ...] = ()
    """The keys that were written. A key that has its value already is not."""


class AlterConfigsReply(ReplyMessage, frozen=True):
    """The results, and the log's end after the change."""

    resources: tuple[AlteredConfigs, ...]
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
    """With `dry_run`: the records that would be written; see `metadata.messages.records_json`."""


class ConfigSynonym(ReplyMessage, frozen=True):
    """A source that has a value, and the name that the config has there."""

    name: str
    value: str | None
    """None: it is sensitive."""
    source: str


class ConfigEntry(ReplyMessage, frozen=True):
    """One config of a resource, with the value that applies."""

    name: str
    value: str | None
    """None: there is none, or it is sensitive."""
    source: str
    """Kafka's name for the source of the value, such as DYNAMIC_TOPIC_CONFIG."""
    config_type: str
    """As in Kafka: boolean, int, …; empty for a key that Kafka doesn't define."""
    sensitive: bool = False
    """The value is never shown."""
    read_only: bool = False
    """Only the broker's own file sets it."""
    synonyms: tuple[ConfigSynonym, ...] = ()
    """All sources that have a value, the one that applies first."""


class DescribeConfigsReply(ReplyMessage, frozen=True):
    """The configs of one resource, from one image, sorted by key."""

    offset: int
    epoch: int
    resource_type: str
    resource_name: str
    configs: tuple[ConfigEntry, ...]
    age_ms: int | None = 0


class ConfiguredResource(ReplyMessage, frozen=True):
    """A resource that has configs of its own."""

    resource_type: str
    resource_name: str
    config_count: Count


class ListConfigsReply(ReplyMessage, frozen=True):
    """Resources that have configs, by type and name, from one image."""

    offset: int
    epoch: int
    resources: tuple[ConfiguredResource, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there are more: ask again with it as `continuation`. All pages are from one image."""
