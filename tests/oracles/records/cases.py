"""The records to compare: each golden one that Kafka has, in every version that Kafka has of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kafka_listener.projection.kafka_fields import fields_writer
from kafka_listener.projection.record_versions import is_shown
from kafka_listener.wire.messages import encode_metadata_record, message_schema
from metadata.codec import decode_records
from metadata.records import Record
from tests.oracles.replay.projection import in_kafkas_words

_GOLDEN: Final = Path(__file__).parents[2] / "golden" / "records.json"


class RecordCase(NamedTuple):
    """A record in one version."""

    name: str
    record: Record
    version: int

    @property
    def bytes(self) -> bytes:
        """What we write."""
        kind = type(self.record)
        fields = fields_writer(kind, self.version)(self.record)
        return encode_metadata_record(kind.__name__, self.version, fields)

    @property
    def question(self) -> str:
        """The line for the oracle."""
        type_id, _, data = in_kafkas_words(self.record, 0)
        schema = message_schema(type(self.record).__name__).struct
        known = {
            name[0].lower() + name[1:]
            for name, field in schema.by_name.items()
            if self.version in field.versions
        }
        said = {name: value for name, value in data.items() if name in known}
        return json.dumps([type_id, self.version, said, self.bytes.hex()])


def cases() -> Iterator[RecordCase]:
    """Yield all cases, in the order of the golden file."""
    for number, vector in enumerate(json.loads(_GOLDEN.read_text())):
        for place, record in enumerate(decode_records(bytes.fromhex(vector["hex"]))):
            if not is_shown(record):
                continue
            first, last = message_schema(type(record).__name__).versions
            for version in range(first, last + 1):
                yield RecordCase(
                    f"{number}.{place}-{type(record).__name__}-{version}", record, version
                )
