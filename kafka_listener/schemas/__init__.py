"""Kafka's own message schemas, as data: `messages.json` holds one message a line.

They are part of Apache Kafka 4.4.0 (Apache License 2.0, the text is our LICENSE too; Kafka's own
notice stands in NOTICE). What a codec doesn't read is left out: comments and the `about` texts.
Kafka 4.3.1 and older know a subset of these messages and versions.
`python -m tests.oracles.kafka_schemas.write` makes the file again from Kafka's jars.
"""

import json
from importlib.resources import files
from typing import Any, Final

KAFKA_RELEASE: Final = "4.4.0"


def read_schemas() -> list[dict[str, Any]]:
    """Return every message's schema, as Kafka writes it in JSON."""
    text = files(__package__).joinpath("messages.json").read_text(encoding="utf-8")
    schemas: list[dict[str, Any]] = json.loads(text)
    return schemas
