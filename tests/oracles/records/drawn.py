"""Records that Kafka's own classes drew and wrote: which are asked, and what must come back.

Rule: every version of every metadata record that our schemas know is asked with some seeds.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kafka_listener.schemas import read_schemas
from kafka_listener.wire.messages import message_schema

JAVA: Final = Path(__file__).parent / "DrawnRecords.java"
JAVA_CLASS: Final = "DrawnRecords"
TABLE: Final = Path(__file__).parent / "drawn.txt"
ALL_TYPES: Final = "[]"
"""The question for all types of a Kafka release."""
SEEDS: Final = 6


class Asked(NamedTuple):
    """A record to draw."""

    name: str
    type_id: int
    version: int
    seed: int

    @property
    def key(self) -> str:
        """Its name in the table."""
        return f"{self.name}-{self.version}-{self.seed}"

    @property
    def question(self) -> str:
        """The line for the oracle."""
        return json.dumps([self.type_id, self.version, self.seed])


class KnownType(NamedTuple):
    """A type of records in a Kafka release."""

    name: str
    type_id: int
    lowest: int
    highest: int


def our_types() -> list[KnownType]:
    """Return the types that our schemas have."""
    found = []
    for schema in read_schemas():
        if schema["type"] == "metadata":
            known = message_schema(schema["name"])
            found.append(KnownType(known.name, known.api_key, *known.versions))
    return sorted(found, key=lambda known: known.type_id)


def parse_types(answer: str) -> list[KnownType]:
    """Read the answer to ALL_TYPES."""
    rows = (row.split(":") for row in answer.split())
    found = [KnownType(name, *map(int, numbers)) for name, *numbers in rows]
    return sorted(found, key=lambda known: known.type_id)


def asked(types: list[KnownType], seeds: int = SEEDS) -> Iterator[Asked]:
    """Yield what is asked of these types."""
    for known in types:
        for version in range(known.lowest, known.highest + 1):
            for seed in range(seeds):
                yield Asked(known.name, known.type_id, version, seed)
