"""What rights cost: a change that is judged, a name of a list, the operations of a topic.

    python -m benchmarks.rights [--entries N]

Rule: only the judging is measured, on an image with many entries, and no server. A change is judged
when it arrives and again when it is decided. The second look is free while the entries are the
same.
"""

import argparse
import time
from collections.abc import Callable

import msgspec
import structlog

from controller.access.guard import AccessGuard, Asker
from controller.access.listing import ListFilter
from controller.access.request_needs import RequestFacts
from controller.config import ControllerConfig
from metadata.acl_rules import AclPolicy
from metadata.image import EMPTY, MetadataImage
from metadata.image.acls import AclsDelta
from metadata.messages import CreateTopicsRequest
from metadata.messages.topics import NewTopic
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
)
from metadata.steps import finished
from runtime.sockets.refusals import Refusals

_SECONDS = 0.5
_HOST = "10.0.0.7"
_ALLOW = AclPermissionType.ALLOW


def with_entries(count: int) -> MetadataImage:
    """Return an image in which alice may create `orders-…`, bob anything, and others read."""
    rows = [
        ("User:alice", AclResourceType.TOPIC, "orders-", AclPatternType.PREFIXED),
        ("User:bob", AclResourceType.CLUSTER, "kafka-cluster", AclPatternType.LITERAL),
        *(
            (f"User:u{n}", AclResourceType.TOPIC, f"topic-{n}", AclPatternType.LITERAL)
            for n in range(count)
        ),
    ]
    delta = AclsDelta(EMPTY.acls)
    for number, (principal, kind, name, pattern) in enumerate(rows):
        uuid = number.to_bytes(16, "big")
        record = AccessControlEntryRecord(
            uuid, kind, name, pattern, principal, "*", AclOperation.ALL, _ALLOW
        )
        delta.add_entry(record, number)
    return msgspec.structs.replace(EMPTY, acls=finished(delta.apply_in_steps()))


def per_call_us(act: Callable[[], object]) -> float:
    """Return microseconds of processor time a call, the least of three rounds."""
    rounds = []
    for _ in range(3):
        began, calls = time.process_time(), 0
        while time.process_time() - began < _SECONDS:
            for _ in range(50):
                act()
            calls += 50
        rounds.append((time.process_time() - began) / calls * 1e6)
    return min(rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--entries", type=int, default=10_000)
    given = parser.parse_args()
    image = with_entries(given.entries)
    config = ControllerConfig(
        cluster_id="c",
        node_id=1,
        controller_urls={},
        authorization="on",
        super_users=frozenset({"User:root"}),
    )
    guard = AccessGuard(config, Refusals(structlog.get_logger(), lambda _s, _act: None))
    message = CreateTopicsRequest(topics=(NewTopic(name="orders-of-today"),))

    def judged(principal: str) -> Callable[[], object]:
        asker = Asker(principal, _HOST)
        facts = RequestFacts(principal, {}, {}, message)

        def act() -> None:
            access = guard.of("create_topics", asker, facts)
            assert access.refusal(image) is None
            assert access.refusal(image) is None

        return act

    def shown(name: str) -> Callable[[], object]:
        policy = AclPolicy(frozenset({"User:root"}), allow_if_no_acl=False)
        listed = ListFilter(image.acls, policy, "User:alice", _HOST, AclOperation.DESCRIBE)
        return lambda: listed.shows(AclResourceType.TOPIC, name)

    rows = {
        "a change of a super user": judged("User:root"),
        "a change by a right on the cluster": judged("User:bob"),
        "a change by a prefix of the topic's name": judged("User:alice"),
        "a name of a list, 15 characters": shown("orders-of-today"),
        "a hidden name of a list, 15 characters": shown("hidden-of-today"),
        "a name of a list, 249 characters": shown("orders-" + "x" * 242),
    }
    for what, act in rows.items():
        print(f"{what}: {per_call_us(act):.1f} µs, {given.entries:,} entries")


if __name__ == "__main__":
    main()
