"""Compares our replay of a metadata log with that of Kafka's own loader.

`logs` makes logs, `projection` shows them as Kafka's records, `comparing` holds both images against
each other. The Java program `ReplayOracle` runs Kafka's `MetadataBatchLoader`, `MetadataDelta` and
`MetadataImage`. `answers.jsonl` is a small table of Kafka's images for `make test`. ADR 0037.
"""

from pathlib import Path
from typing import Final

JAVA: Final = Path(__file__).parent / "ReplayOracle.java"
JAVA_CLASS: Final = "org.apache.kafka.image.loader.ReplayOracle"
TABLE: Final = Path(__file__).parent / "answers.jsonl"
