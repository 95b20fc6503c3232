"""The min ISR of topics: the topic's config, else the cluster's default, else 1.

Rule: a value counts if it is 1 to 9 ASCII digits and at least 1; any other is ignored. A topic's
config belongs to its name and is removed with the topic.
"""

import re
from typing import Final

from metadata.records import ConfigRecord, ConfigResourceType

_KEY: Final = "min.insync.replicas"
_VALUE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class MinIsr:
    """The current configs."""

    def __init__(self) -> None:
        self._by_topic: dict[str, int] = {}
        self._default: int | None = None

    def of(self, topic: str) -> int:
        """Return the min ISR of a topic with this name."""
        return self._by_topic.get(topic) or self._default or 1

    def set(self, record: ConfigRecord) -> str | None:
        """Apply a config.

        Return the name of the topic that it affects, "" for all topics, None for none.
        """
        if record.name != _KEY:
            return None
        value = _number(record.value)
        if record.resource_type == ConfigResourceType.TOPIC:
            if value is None:
                self._by_topic.pop(record.resource_name, None)
            else:
                self._by_topic[record.resource_name] = value
            return record.resource_name or None
        if record.resource_type == ConfigResourceType.BROKER and not record.resource_name:
            self._default = value
            return ""
        return None

    def forget(self, topic: str) -> None:
        """Drop the config of a removed topic."""
        self._by_topic.pop(topic, None)


def _number(value: str | None) -> int | None:
    if value is None or not _VALUE.fullmatch(value):
        return None
    return int(value) or None
