"""Configs by resource.

Rule: a resource whose last config is removed is removed from the map. A topic's configs are removed
with the topic. The resources in order are derived: they are in no snapshot and no state hash.
"""

from collections.abc import Callable, Generator, Iterator
from itertools import takewhile
from typing import Any, Final

import msgspec

from metadata.buckets import BucketMap, mix_typed_name
from metadata.image.open_maps import BuiltKeys, OpenMap
from metadata.image.overlay import Overlay
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, replays
from metadata.records import ConfigRecord, ConfigResourceType, Record

ConfigResource = tuple[int, str]
"""(a `ConfigResourceType`, the resource's name). BROKER with "" is the default of all brokers."""

ConfigValues = tuple[tuple[str, str], ...]
"""(name, value), sorted by name."""


class ConfigsImage(msgspec.Struct, frozen=True):
    """The configs of each resource that has configs."""

    resources: BucketMap[ConfigResource, ConfigValues]
    keys: SortedKeys[ConfigResource]
    """The resources that have configs, in order."""

    def of(self, resource_type: int, resource_name: str) -> dict[str, str]:
        """Return a resource's own configs, without defaults, sorted by name."""
        return dict(self.resources.get((resource_type, resource_name), ()))

    def value(self, resource_type: int, resource_name: str, name: str) -> str | None:
        """Return one config of a resource; None if it isn't set on that resource."""
        return self.of(resource_type, resource_name).get(name)

    def named(self, resource_type: int, after: str | None = None) -> Iterator[str]:
        """Yield the names of a type's resources that have configs, in order.

        `after`: only the names that sort after this one.
        """
        # A shorter tuple sorts before every longer one that begins alike.
        start: Any = (resource_type,) if after is None else (resource_type, after)
        of_type = takewhile(lambda key: key[0] == resource_type, self.keys.after(start))
        return (name for _, name in of_type)


EMPTY_CONFIGS = ConfigsImage(BucketMap(mix_typed_name), SortedKeys())


def config_records(resource: ConfigResource, values: ConfigValues) -> tuple[Record, ...]:
    """Return the records that restore a resource's configs."""
    return tuple(ConfigRecord(*resource, name, value) for name, value in values)


class ConfigsDelta:
    """Replays the records of configs."""

    def __init__(self, image: ConfigsImage) -> None:
        self._image = image
        self.resources = Overlay(image.resources)

    def apply_in_steps(self) -> Generator[None, None, ConfigsImage]:
        keys = yield from self._image.keys.changing(self.resources.changed)
        return ConfigsImage((yield from self.resources.apply_in_steps()), keys)

    def opened(self, built: Callable[[], ConfigsImage]) -> ConfigsImage:
        """Return the image of what was replayed so far (see `open_maps`)."""
        return ConfigsImage(
            OpenMap(self.resources, lambda: built().resources), BuiltKeys(lambda: built().keys)
        )

    @replays(ConfigRecord)
    def set_config(self, record: ConfigRecord, offset: int) -> None:
        """Set a key, or delete it if the value is None. A key that is deleted need not exist."""
        resource = (record.resource_type, record.resource_name)
        values = dict(self.resources.get(resource) or ())
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if values:
            self.resources.set(resource, tuple(sorted(values.items())))
        else:
            self.resources.remove(resource)

    def remove_topic(self, name: str) -> None:
        """Remove the configs of a topic that was removed."""
        resource = (int(ConfigResourceType.TOPIC), name)
        if resource in self.resources:
            self.resources.remove(resource)


TABLES: Final = (ImageTable("configs", "configs", "resources", config_records, "config"),)
