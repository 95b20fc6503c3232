"""The largest requests in Kafka's protocol, in several shapes, by api key.

Rule: a shape goes to the limit of the listener (ADR 0077) or of our routes, whichever is less; a
second one goes beyond that of the routes, so that it is decoded and refused. Changes are validated
only, or change nothing, unless the row's records say otherwise.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from benchmarks.lateness.stage import BIGGEST
from kafka_listener.wire.messages import RequestHeader, encode_message, encode_request
from kafka_listener.wire.messages import encode_request_header as encode_head
from kafka_listener.wire.schema import Fields

Shape = tuple[int, Fields]
"""A version, and the fields of a request in it."""
MOST: Final = 99_000
"""Elements of the largest requests; a few are left for what is around them."""
_UNKNOWN: Final = "no-such-thing-{}"


class Facts(NamedTuple):
    """What requests name."""

    topic_id: bytes
    """Of the biggest topic."""
    partitions: int
    """Its partitions."""
    topics: list[str]
    """Names of other topics."""
    broker_epoch: int
    """Of broker 1."""


def _names(count: int) -> list[str]:
    return [_UNKNOWN.format(number) for number in range(count)]


def _topics_to_make(_facts: Facts) -> list[Shape]:
    topic = {"NumPartitions": 1, "ReplicationFactor": 3, "Assignments": [], "Configs": []}
    config = [{"Name": f"retention.ms.{n}", "Value": "1"} for n in range(3)]
    assigned = [{"PartitionIndex": n, "BrokerIds": [1, 2, 3]} for n in range(39_000)]
    one = {**topic, "Name": "x", "NumPartitions": -1, "ReplicationFactor": -1}
    return [
        (7, {"Topics": topics, "timeoutMs": 60_000, "validateOnly": True})
        for topics in (
            [{**topic, "Name": name} for name in _names(10_000)],
            [{**topic, "Name": name, "Configs": config} for name in _names(9_000)],
            [{**one, "Assignments": assigned}],
            [{**topic, "Name": name} for name in _names(MOST)],
        )
    ]


def _topics_to_remove(_facts: Facts) -> list[Shape]:
    return [
        (6, {"Topics": [{"Name": name} for name in _names(count)], "TimeoutMs": 60_000})
        for count in (10_000, MOST)
    ]


def _acls_found(_facts: Facts) -> list[Shape]:
    kinds = {"ResourceTypeFilter": 1, "PatternTypeFilter": 1, "Operation": 1, "PermissionType": 1}
    names = {"ResourceNameFilter": None, "PrincipalFilter": None, "HostFilter": None}
    return [(3, {**kinds, **names})]


def _acls_made(_facts: Facts) -> list[Shape]:
    entry = {
        "ResourceType": 2,
        "ResourcePatternType": 3,
        "Principal": "User:kafka-acl",
        "Host": "*",
        "Operation": 3,
        "PermissionType": 3,
    }
    return [
        (3, {"Creations": [{**entry, "ResourceName": f"kafka-{n}"} for n in range(count)]})
        for count in (2_000, MOST)
    ]


def _acls_removed(facts: Facts) -> list[Shape]:
    every = _acls_found(facts)[0][1]
    mine = {**every, "PrincipalFilter": "User:kafka-acl"}
    return [(3, {"Filters": [mine] * count}) for count in (100, MOST)]


def _configs_set(facts: Facts) -> list[Shape]:
    config = {"Name": "retention.ms", "ConfigOperation": 0, "Value": "5"}
    return [
        (
            1,
            {
                "Resources": [
                    {"ResourceType": 2, "ResourceName": name, "Configs": [config] * each}
                    for name in names
                ],
                "ValidateOnly": True,
            },
        )
        for names, each in (
            (facts.topics[:5_000], 1),
            (_names(10_000), 1),
            ([BIGGEST], 39_000),
            (_names(MOST // 2), 1),
        )
    ]


def _configs_replaced(_facts: Facts) -> list[Shape]:
    config = {"Name": "retention.ms", "Value": "5"}
    return [
        (
            2,
            {
                "Resources": [
                    {"ResourceType": kind, "ResourceName": name, "Configs": [config]}
                    for name in names
                ],
                "ValidateOnly": True,
            },
        )
        for kind, names in ((2, _names(200)), (8, _names(15_000)), (2, _names(MOST // 2)))
    ]


def _partitions_to_make(facts: Facts) -> list[Shape]:
    brokers = [{"BrokerIds": [1, 2, 3]}] * 39_000
    return [
        (3, {"Topics": topics, "TimeoutMs": 60_000, "ValidateOnly": True})
        for topics in (
            [{"Name": name, "Count": 3, "Assignments": None} for name in _names(10_000)],
            [{"Name": BIGGEST, "Count": facts.partitions + 39_000, "Assignments": brokers}],
            [{"Name": name, "Count": 3, "Assignments": None} for name in _names(MOST)],
        )
    ]


def _elections(_facts: Facts) -> list[Shape]:
    numbers = [list(range(10_000)), list(range(310_000)), list(range(790_000))]
    return [
        (2, {"ElectionType": 0, "TopicPartitions": [{"Topic": BIGGEST, "Partitions": some}]})
        for some in numbers
    ]


def _reassigned(_facts: Facts) -> list[Shape]:
    unknown = [
        {"Name": n, "Partitions": [{"PartitionIndex": 0, "Replicas": [1, 2, 3]}]}
        for n in _names(49_000)
    ]
    return [
        (1, {"TimeoutMs": 60_000, "Topics": topics})
        for topics in (
            [
                {
                    "Name": BIGGEST,
                    "Partitions": [{"PartitionIndex": n, "Replicas": None} for n in range(count)],
                }
            ]
            for count in (50_000, MOST)
        )
    ] + [(1, {"TimeoutMs": 60_000, "Topics": unknown})]


def _reassignments_listed(_facts: Facts) -> list[Shape]:
    listed = [{"Name": BIGGEST, "PartitionIndexes": list(range(310_000))}]
    return [(0, {"Topics": topics}) for topics in (None, listed)]


def _quotas_altered(_facts: Facts) -> list[Shape]:
    ops = [{"Key": "producer_byte_rate", "Value": 1024.0, "Remove": False}]
    return [
        (
            1,
            {
                "Entries": [
                    {"Entity": [{"EntityType": "user", "EntityName": name}], "Ops": ops}
                    for name in _names(count)
                ],
                "ValidateOnly": True,
            },
        )
        for count in (1_000, MOST // 3)
    ]


def _credentials_altered(_facts: Facts) -> list[Shape]:
    return [
        (0, {"Deletions": [{"Name": n, "Mechanism": 1} for n in _names(count)], "Upsertions": []})
        for count in (1_000, MOST)
    ]


def _described_configs(facts: Facts) -> list[Shape]:
    known = [
        {"ResourceType": 2, "ResourceName": n, "ConfigurationKeys": None} for n in facts.topics
    ]
    brokers = [
        {"ResourceType": 4, "ResourceName": str(n), "ConfigurationKeys": None}
        for n in range(1, 101)
    ]
    unknown = [
        {"ResourceType": 2, "ResourceName": n, "ConfigurationKeys": None} for n in _names(MOST)
    ]
    return [
        (4, {"Resources": some, "IncludeSynonyms": True})
        for some in (known[:2_000], brokers, unknown[:10_000], unknown, known[:1] * MOST)
    ]


def _isrs(facts: Facts) -> list[Shape]:
    isr = [{"BrokerId": broker, "BrokerEpoch": 1} for broker in (1, 2, 3)]
    numbers = {"LeaderEpoch": 0, "PartitionEpoch": 0, "LeaderRecoveryState": 0}
    partitions = [
        {**numbers, "PartitionIndex": n, "NewIsrWithEpochs": isr} for n in range(MOST // 4)
    ]
    topics = [{"TopicId": facts.topic_id, "Partitions": partitions}]
    return [(3, {"BrokerId": 1, "BrokerEpoch": facts.broker_epoch, "Topics": topics})]


def _directories(facts: Facts) -> list[Shape]:
    partitions = [{"PartitionIndex": n} for n in range(MOST)]
    topics = [{"TopicId": facts.topic_id, "Partitions": partitions}]
    directory = {"Id": b"a directory's id", "Topics": topics}
    asked = {"BrokerId": 1, "BrokerEpoch": facts.broker_epoch, "Directories": [directory]}
    return [(0, asked)]


def _registrations(_facts: Facts) -> list[Shape]:
    listener = {"Host": "localhost", "Port": 9092, "SecurityProtocol": 0}
    return [
        (
            4,
            {
                "BrokerId": 9_999,
                "ClusterId": "benchmark",
                "IncarnationId": bytes(15) + b"\1",
                "Listeners": [{**listener, "Name": f"L{n}"} for n in range(60)],
                "Features": [],
                "Rack": None,
                "LogDirs": [n.to_bytes(16, "big") for n in range(900)],
                "PreviousBrokerEpoch": -1,
            },
        )
    ]


def _heartbeats(facts: Facts) -> list[Shape]:
    directories = [n.to_bytes(16, "big") for n in range(900)]
    return [
        (
            2,
            {
                "BrokerId": 1,
                "BrokerEpoch": facts.broker_epoch,
                "CurrentMetadataOffset": 1,
                "OfflineLogDirs": dirs,
            },
        )
        for dirs in ([], directories)
    ]


def _envelopes(facts: Facts) -> list[Shape]:
    said = {"Type": "User", "Name": "alice", "TokenAuthenticated": False}
    principal = b"\0\0" + encode_message("DefaultPrincipalData", 0, said)
    inner = ((19, _topics_to_make), (44, _configs_set), (45, _reassigned), (20, _topics_to_remove))
    return [
        (
            0,
            {
                "RequestData": encode_head(RequestHeader(key, version, 7, "a-client"))
                + encode_request(key, version, fields),
                "RequestPrincipal": principal,
                "ClientHostAddress": b"\x0a\0\0\1",
            },
        )
        for key, shapes in inner
        for version, fields in shapes(facts)
    ]


def _metadata(facts: Facts) -> list[Shape]:
    named = [{"TopicId": bytes(16), "Name": name} for name in facts.topics]
    unknown = [{"TopicId": bytes(16), "Name": name} for name in _names(MOST)]
    return [
        (version, {"Topics": topics})
        for version, topics in ((12, None), (12, named), (12, unknown), (1, None))
    ]


def _topic_pages(facts: Facts) -> list[Shape]:
    return [
        (0, {"Topics": topics, "ResponsePartitionLimit": 2_000, "Cursor": cursor})
        for topics, cursor in (
            ([], None),
            ([], {"TopicName": BIGGEST, "PartitionIndex": 5}),
            ([{"Name": name} for name in facts.topics], None),
            ([{"Name": name} for name in _names(MOST)], None),
        )
    ]


def _quorum(_facts: Facts) -> list[Shape]:
    log = {"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}
    return [(2, {"Topics": topics}) for topics in ([log], [log] * 450)]


def _fixed(*shapes: Shape) -> Callable[[Facts], list[Shape]]:
    return lambda _facts: list(shapes)


_OWNERS: Final = [{"PrincipalType": "User", "PrincipalName": name} for name in _names(39_000)]
_LEVELS: Final = [{"Feature": name, "MaxVersionLevel": 1, "UpgradeType": 1} for name in _names(60)]
SHAPES: Final[Mapping[int, Callable[[Facts], list[Shape]]]] = {
    3: _metadata,
    10: _fixed((6, {"KeyType": 0, "CoordinatorKeys": _names(MOST)})),
    17: _fixed((1, {"Mechanism": "NONE-SUCH"})),
    18: _fixed((4, {"ClientSoftwareName": "lateness", "ClientSoftwareVersion": "1"})),
    19: _topics_to_make,
    20: _topics_to_remove,
    29: _acls_found,
    30: _acls_made,
    31: _acls_removed,
    32: _described_configs,
    33: _configs_replaced,
    35: _fixed((4, {"Topics": [{"Topic": name, "Partitions": [0]} for name in _names(MOST)]})),
    36: _fixed((2, {"AuthBytes": bytes(30_000)})),
    37: _partitions_to_make,
    38: _fixed(
        (3, {"Renewers": _OWNERS[:100], "MaxLifetimeMs": -1}),
        (3, {"Renewers": _OWNERS, "MaxLifetimeMs": -1}),
    ),
    39: _fixed((2, {"Hmac": bytes(64), "RenewPeriodMs": -1})),
    40: _fixed((2, {"Hmac": bytes(64), "ExpiryTimePeriodMs": -1})),
    41: _fixed((3, {"Owners": None}), (3, {"Owners": _OWNERS})),
    43: _elections,
    44: _configs_set,
    45: _reassigned,
    46: _reassignments_listed,
    48: _fixed(
        (
            1,
            {
                "Components": [{"EntityType": "user", "MatchType": 2, "Match": None}],
                "Strict": False,
            },
        )
    ),
    49: _quotas_altered,
    50: _fixed((0, {"Users": None}), (0, {"Users": [{"Name": name} for name in _names(39_000)]})),
    51: _credentials_altered,
    55: _quorum,
    56: _isrs,
    57: _fixed((2, {"timeoutMs": 60_000, "FeatureUpdates": _LEVELS, "ValidateOnly": True})),
    58: _envelopes,
    60: _fixed(*((2, {"EndpointType": kind, "IncludeFencedBrokers": True}) for kind in (1, 2))),
    62: _registrations,
    63: _heartbeats,
    64: _fixed((0, {"BrokerId": 888_888})),
    67: lambda facts: [(0, {"BrokerId": 1, "BrokerEpoch": facts.broker_epoch})],
    73: _directories,
    74: _fixed((1, {"ResourceTypes": []}), (1, {"ResourceTypes": [2, 4, 8, 16, 32]})),
    75: _topic_pages,
}
"""By api key, for both listeners. Fetch and FetchSnapshot follow the log, so they have loads of
their own."""


def largest(key: int, facts: Facts) -> list[tuple[int, Any]]:
    """Return the shapes of an api key."""
    return SHAPES[key](facts)
