"""Routes, records and requests of Kafka's protocol that no load drives.

Rule: each route, and each record that the controller's code makes, has a load, or stands here with
the reason why no request writes it. Each api key that a listener for Kafka's protocol serves has a
load on that listener.
"""

import ast
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from benchmarks.lateness.load import Load
from benchmarks.lateness.loads import LOADS
from controller.http.routes import ROUTES
from kafka_listener.wire.messages import api_name
from metadata.records import RECORD_CLASSES

NOT_BY_REQUEST = {
    "AbortTransactionRecord": "of a defect, or of a leader that went",
    "BeginEpochRecord": "of an election",
    "EpochStartRecord": "of a snapshot",
    "NoOpRecord": "of an election",
    "RemoveAccessTokenRecord": "a week after the end of a token",
    "RemoveJoinTokenRecord": "a week after the end of a token",
    "PseudonymRecord": "of a person's first request, where no Kafka broker may be",
    "RegisterControllerRecord": "of an election",
    "KRaftVersionRecord": "of the first activation",
    "ClusterKeyRecord": "of an election",
    "SubjectKeysRecord": "of the first activation",
    "ClusterGenerationRecord": "of the first activation, and of a repair",
}
"""Records that the controller writes, but not because somebody asks."""


def written_records() -> set[str]:
    """The classes of records that the controller's code makes, found in its sources."""
    names = {kind.__name__ for kind in RECORD_CLASSES}
    found: set[str] = set()
    for path in (Path(__file__).parents[2] / "controller").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found |= {node.func.id} & names
    return found


def not_sent(served: Mapping[str, AbstractSet[int]], loads: tuple[Load, ...] = LOADS) -> list[str]:
    """Api keys that no load sends. `served`: the keys by the listener that serves them."""
    sent = {asked for load in loads for asked in load.kafka}
    return [
        f"Kafka's {api_name(key)} to the listener of the {listener}"
        for listener, keys in served.items()
        for key in sorted(keys)
        if (listener, key) not in sent
    ]


def not_driven(loads: tuple[Load, ...] = LOADS) -> list[str]:
    """Routes and records for which there is no load."""
    routes = {name for load in loads for name in load.routes}
    records = {name for load in loads for name in load.records}
    wanted = written_records() - set(NOT_BY_REQUEST)
    return [f"route {r.name}" for r in ROUTES if r.name not in routes] + [
        f"record {name}" for name in sorted(wanted - records)
    ]
