"""The smallest ISR that topics ask for: the topic's config, else the cluster's default, else 1.

Rule: a value counts if it is 1 to 9 ASCII digits that make at least 1; any other is as if it were
not set. A topic's config belongs to its name, and goes when the topic goes.
"""

import re
from typing import Final

from metadata.records import ConfigRecord, ConfigResourceType

_KEY: Final = "min.insync.replicas"
_VALUE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class MinIsr:
    """What is configured now."""

    def __init__(self) -> None:
        self._by_topic: dict[str, int] = {}
        self._default: int | None = None

    def of(self, topic: str) -> int:
        """Return what holds for a topic of this name."""
        return self._by_topic.get(topic) or self._default or 1

    def set(self, record: ConfigRecord) -> str | None:
        """Take in a config; return the topic's name that it concerns, "" for all, None for none."""
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
        """The topic of this name is removed."""
        self._by_topic.pop(topic, None)


def _number(value: str | None) -> int | None:
    if value is None or not _VALUE.fullmatch(value):
        return None
    return int(value) or None
