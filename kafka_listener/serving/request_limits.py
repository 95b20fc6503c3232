"""How many elements the arrays of a request may have, by its kind.

Rule: what a broker says of itself has as few elements as a broker has listeners, features and log
directories. All other requests name topics, partitions or entries, and share one limit.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kafka_listener.wire.schema import ELEMENTS_MAX

SHORT_MAX: Final = 1_000
_SHORT: Final[Mapping[int, str]] = MappingProxyType(
    {
        18: "ApiVersions: none",
        62: "BrokerRegistration: listeners, features, directories",
        63: "BrokerHeartbeat: directories",
        74: "ListConfigResources: kinds of resources",
    }
)
"""By api key: what the arrays of the request have."""


def elements_max(api_key: int) -> int:
    """Return how many elements a request may have."""
    return SHORT_MAX if api_key in _SHORT else ELEMENTS_MAX
