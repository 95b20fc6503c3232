"""Which versions of Kafka can run on our controllers, and where their logs begin.

Rule: a new log begins at the newest level of metadata.version that brokers of the chosen version
can read. Brokers older than 4.0 were never tried, so they are refused.
"""

from typing import Final

from logberg.kafka.kafka_error import KafkaError
from logberg.processes.settings.kafka_settings import KAFKA_LEVEL
from metadata.features import METADATA_VERSION

OLDEST: Final = (4, 0)
_LEVELS: Final = {(4, 0): 25, (4, 1): 27, (4, 2): 29}
"""4.0-IV3, 4.1-IV1, 4.2-IV1. Later versions read the level at which our logs for Kafka begin."""


def first_levels_for(version: str) -> dict[str, int]:
    """Return the feature levels at which a new log for brokers of a version begins.

    Raises KafkaError for a version that is too old, or that is none.
    """
    try:
        major, minor, *_ = (int(part) for part in version.partition("-")[0].split("."))
    except ValueError:
        raise KafkaError(f"{version!r} is no version of Kafka; write one such as 4.3.1.") from None
    if (major, minor) < OLDEST:
        raise KafkaError(
            f"Kafka {version} is too old: its brokers can't join our controllers. Use 4.0 or later."
        )
    return {METADATA_VERSION: _LEVELS.get((major, minor), KAFKA_LEVEL)}
