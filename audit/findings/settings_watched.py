"""Configs whose numbers matter to an auditor: whether a change lowered them.

Rule: a value is compared with the one before it. Without a value, the default counts: for
`min.insync.replicas` the cluster's, else 1; for retention Kafka's own, since the brokers' files
are not in the log. -1 of a retention means for ever. A value that isn't a number is not compared.
What a topic's creation sets is no change.
"""

import re
from typing import Final

from metadata.records import ConfigRecord, ConfigResourceType

MIN_ISR: Final = "min.insync.replicas"
_DAYS_7_MS: Final = 604_800_000
_FOR_EVER: Final = 1 << 63
_DEFAULTS: Final = {
    MIN_ISR: 1,
    "retention.ms": _DAYS_7_MS,
    "retention.bytes": _FOR_EVER,
    "delete.retention.ms": 86_400_000,
    "log.retention.ms": _DAYS_7_MS,
    "log.retention.bytes": _FOR_EVER,
}
"""The keys that are compared, and their values where nobody set one, as in Kafka."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)


class WatchedSettings:
    """The current values of the keys that are compared."""

    def __init__(self, values: dict[str, str]) -> None:
        """`values`: by `TYPE:NAME:KEY`; kept and changed here."""
        self.values = values

    def change(self, record: ConfigRecord) -> tuple[str, str]:
        """Apply a config; return the value before, and `lowered`, `raised` or nothing."""
        if record.name not in _DEFAULTS:
            return "", ""
        key = _key(record.resource_type, record.resource_name, record.name)
        before, was = self.values.get(key), self._number(record)
        if record.value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = record.value
        now = self._number(record)
        if was is None or now is None or was == now:
            return before or "", ""
        return before or "", "lowered" if now < was else "raised"

    def forget_topic(self, name: str) -> None:
        """A removed topic has no configs."""
        for key in _DEFAULTS:
            self.values.pop(_key(ConfigResourceType.TOPIC, name, key), None)

    def _number(self, record: ConfigRecord) -> int | None:
        """What counts now for the thing that a record is about; None: it is not a number."""
        key = record.name
        places = [(record.resource_type, record.resource_name), (ConfigResourceType.BROKER, "")]
        for kind, name in places:
            value = self.values.get(_key(kind, name, key))
            if value is not None:
                return _number(key, value)
        return _DEFAULTS[key]


def _number(key: str, value: str) -> int | None:
    if not _NUMBER.fullmatch(value):
        return None
    number = int(value)
    return _FOR_EVER if number < 0 and key != MIN_ISR else number


def _key(resource_type: int, name: str, key: str) -> str:
    return f"{int(resource_type)}:{name}:{key}"
