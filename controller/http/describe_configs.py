"""Answers requests that read configs: which resources have some, and what applies to one.

Rule: a sensitive value is never in an answer.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.http.pages import Pages
from controller.http.queries import limit_of
from controller.managers.configs import check_exists, resource_of, shown_name
from metadata.configs.definitions import KINDS, definition
from metadata.configs.effective import Effective, EffectiveConfig, OwnConfigs
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.configs import ConfigResource
from metadata.messages import (
    ConfigEntry,
    ConfigSynonym,
    ConfiguredResource,
    DescribeConfigsReply,
    ListConfigsReply,
)
from metadata.messages.parts import LongMessage
from metadata.records import ConfigResourceType
from metadata.records.configs import config_kind

RESOURCES_LISTED_MAX = 1_000


def list_configs(view: View, query: Mapping[str, str], pages: Pages) -> LongMessage:
    """`GET /v1/configs`. Raises LogbergError."""
    kind = configs_wanted(query)
    limit = limit_of(query, RESOURCES_LISTED_MAX) or RESOURCES_LISTED_MAX
    found = list(islice(configs_behind(view.image, kind, query, pages), limit + 1))
    return configs_reply(view, kind, pages, found, limit)


def configs_wanted(query: Mapping[str, str]) -> str | None:
    """Return the type that a list is about; None: all. Raises LogbergError."""
    kind = query.get("type")
    if kind is not None and kind not in KINDS:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"type: {kind[:50]!r}; give one of {', '.join(KINDS)}"
        )
    return kind


def configs_behind(
    image: MetadataImage, kind: str | None, query: Mapping[str, str], pages: Pages
) -> Iterator[ConfigResource]:
    """Yield the resources behind the page before, in order. Raises LogbergError."""
    return _after(image, kind, pages.last(query, _list_of(kind), str))


def configs_reply(
    view: View, kind: str | None, pages: Pages, found: list[ConfigResource], limit: int
) -> LongMessage:
    """Return a page of resources. `found` has one more than the page, if there are more."""
    image, of = view.image, _list_of(kind)
    more = f"{found[limit - 1][0]}/{found[limit - 1][1]}" if len(found) > limit else None
    head = ListConfigsReply(
        offset=readable_offset(image),
        epoch=image.epoch,
        age_ms=view.age_ms,
        resources=(),
        continuation=None if more is None else pages.token(image, of, more),
    )
    listed = found[:limit]
    resources = (
        ConfiguredResource(
            config_kind(resource_type),
            shown_name(resource_type, name),
            len(image.configs.resources[resource_type, name]),
        )
        for resource_type, name in listed
    )
    return LongMessage(head, "resources", resources, len(listed))


def one_config(view: View, kind: str, name: str, own: OwnConfigs) -> LongMessage:
    """`GET /v1/configs/{type}/{name}`. Raises LogbergError."""
    image = view.image
    resource_type, resource_name = resource_of(kind, name)
    if (int(resource_type), resource_name) not in image.configs.resources:
        check_exists(image, resource_type, resource_name)
    effective = Effective(image, own)
    keys = effective.keys_of(resource_type, resource_name)
    head = DescribeConfigsReply(
        offset=readable_offset(image),
        epoch=image.epoch,
        age_ms=view.age_ms,
        resource_type=kind,
        resource_name=shown_name(resource_type, resource_name),
        configs=(),
    )
    entries = (
        _entry(resource_type, config) for config in effective.all_of(resource_type, resource_name)
    )
    return LongMessage(head, "configs", entries, len(keys))


def _list_of(kind: str | None) -> str:
    return "configs" if kind is None else f"configs of {kind}"


def _after(image: MetadataImage, kind: str | None, last: str | None) -> Iterator[ConfigResource]:
    """Yield the resources behind the last one of the page before, in order."""
    resource_type, name = (None, None)
    if last is not None:
        text, _, name = last.partition("/")
        if not text.isascii() or not text.isdecimal():
            raise LogbergError(ErrorCode.INVALID_REQUEST, "continuation: not a token of this list")
        resource_type = int(text)
    if kind is not None:
        of_type = KINDS[kind]
        return ((int(of_type), found) for found in image.configs.named(of_type, name))
    keys = image.configs.keys
    return iter(keys) if resource_type is None else keys.after((resource_type, name or ""))


def _entry(resource_type: int, config: EffectiveConfig) -> ConfigEntry:
    known = definition(resource_type, config.name)
    return ConfigEntry(
        name=config.name,
        value=None if config.sensitive else config.value,
        source=config.source.value,
        config_type="" if known is None else known.type,
        sensitive=config.sensitive,
        read_only=resource_type == ConfigResourceType.BROKER
        and known is not None
        and not known.dynamic,
        synonyms=tuple(
            ConfigSynonym(name, None if config.sensitive else value, source.value)
            for name, value, source in config.candidates
        ),
    )
