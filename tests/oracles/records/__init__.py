"""Compares our bytes of Kafka's metadata records with those of Kafka's own MetadataRecordSerde.

Each golden record that Kafka has is asked in every version that Kafka has of it. The Java program
makes the record from JSON and writes its bytes, and reads our bytes and writes them again.
`answers.txt` keeps Kafka's bytes for `make test`. ADR 0071.
"""

from pathlib import Path
from typing import Final

JAVA: Final = Path(__file__).parent / "RecordsOracle.java"
JAVA_CLASS: Final = "RecordsOracle"
TABLE: Final = Path(__file__).parent / "answers.txt"
