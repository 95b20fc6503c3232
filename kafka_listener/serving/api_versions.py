"""ApiVersions: which requests a listener answers, and the cluster's features (KIP-511, 584).

Rule: a client asks this first, in the newest version that it knows. If we don't know that version,
we answer in version 0 with UNSUPPORTED_VERSION and our versions, and the client asks again.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.wire.messages import API_VERSIONS, api_versions
from kafka_listener.wire.schema import Fields, VersionRange

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
_OWN: Final[Mapping[int, VersionRange]] = MappingProxyType(
    {
        # Version 5 asks for a check of node and cluster that no client of ours needs (KIP-1242).
        API_VERSIONS: VersionRange(0, 4),
        # librdkafka before 2.1 logs in by version 1, but only if the listener also has version 0.
        SASL_HANDSHAKE: VersionRange(0, 1),
        SASL_AUTHENTICATE: VersionRange(0, 2),
    }
)
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_NAMED_FROM: Final = 3
_ZERO_FROM: Final = 4
"""Clients before this version can't read that a feature's lowest level is 0."""


class FeatureVersions(NamedTuple):
    """What ApiVersions says about features."""

    supported: Mapping[str, tuple[int, int]]
    """Lowest and highest level of each feature."""
    finalized: Mapping[str, int]
    epoch: int
    """The offset up to which `finalized` holds; -1: not known yet."""


NO_FEATURES: Final = FeatureVersions({}, {}, -1)


def served_versions(api_keys: Iterable[int]) -> Mapping[int, VersionRange]:
    """Return the versions that a listener with these handlers serves, by api key."""
    keys = sorted({*api_keys, *_OWN})
    known = {key: _OWN.get(key) or api_versions(key) for key in keys}
    return {key: found for key, found in known.items() if found.first <= found.last}


def bad_software(version: int, fields: Fields) -> bool:
    """Say whether the client names itself in a way that Kafka refuses."""
    names = (fields["ClientSoftwareName"], fields["ClientSoftwareVersion"])
    return version >= _NAMED_FROM and not all(_SOFTWARE.fullmatch(name) for name in names)


def api_versions_answer(
    version: int,
    served: Mapping[int, VersionRange],
    features: FeatureVersions,
    code: KafkaCode = KafkaCode.NONE,
) -> Fields:
    """Return the fields of an answer in one version."""
    keys = [
        {"ApiKey": key, "MinVersion": found.first, "MaxVersion": found.last}
        for key, found in served.items()
    ]
    answer: Fields = {"ErrorCode": int(code), "ApiKeys": keys}
    if version < _NAMED_FROM or code is not KafkaCode.NONE:
        return answer
    lowest = 0 if version >= _ZERO_FROM else 1
    answer["SupportedFeatures"] = [
        {"Name": name, "MinVersion": low, "MaxVersion": high}
        for name, (low, high) in sorted(features.supported.items())
        if low >= lowest
    ]
    answer["FinalizedFeatures"] = [
        {"Name": name, "MinVersionLevel": level, "MaxVersionLevel": level}
        for name, level in sorted(features.finalized.items())
    ]
    answer["FinalizedFeaturesEpoch"] = features.epoch
    return answer
