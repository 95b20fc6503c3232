"""Every message that a Kafka listener of ours serves, in every version, with kio's class of it."""

from collections.abc import Iterator

from kafka_listener.serving.api_versions import served_versions
from tests.kafka_fuzz import FuzzedListener
from tests.oracles.kio.pairing import Pair, header_pairs, pairs_of


def all_pairs() -> Iterator[Pair]:
    """Yield headers, requests and responses."""
    yield from header_pairs()
    keys = {
        key
        for of_agent in (False, True)
        for key in FuzzedListener(of_agent=of_agent).service.handlers
    }
    for key, versions in served_versions(keys).items():
        yield from pairs_of(key, range(versions.first, versions.last + 1))
