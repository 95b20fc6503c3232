"""Takes Kafka's message schemas out of Kafka's jars: `python -m tests.oracles.kafka_schemas.write`.

Rule: a message is kept if a controller answers it, if a broker agent answers it, or if it is a
record or a piece of data that these carry. Of a schema stays what a codec reads.
"""

import json
import re
import zipfile
from pathlib import Path
from typing import Any, Final

from kafka_listener import schemas
from tests.oracles.kafka_jars import kafka_jars

FILE: Final = Path(schemas.__file__).with_name("messages.json")
NOTICE: Final = Path(schemas.__file__).with_name("NOTICE")
AGENT: Final = {
    "DescribeClientQuotas",
    "DescribeLogDirs",
    "DescribeTopicPartitions",
    "FindCoordinator",
    "ListConfigResources",
    "ListGroups",
    "ListOffsets",
    "Metadata",
}
"""Requests that clients send to a broker and that an agent answers, if only with an error."""
DATA: Final = {
    "ControlRecordTypeSchema",
    "DefaultPrincipalData",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "VotersRecord",
}
_COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)
_LEFT_OUT: Final = {"about", "entityType", "mapKey", "zeroCopy"}


def made() -> tuple[str, str]:
    """Return what `messages.json` and NOTICE have to be. Raises NoOracleError."""
    folder = kafka_jars()
    kept: list[dict[str, Any]] = []
    for jar in ("kafka-clients", "kafka-metadata"):
        with zipfile.ZipFile(folder / f"{jar}-{schemas.KAFKA_RELEASE}.jar") as archive:
            kept += _kept(archive)
            notice = archive.read("NOTICE").decode()
    lines = ",\n".join(json.dumps(schema, separators=(",", ":")) for schema in kept)
    return f"[\n{lines}\n]\n", notice


def _kept(archive: zipfile.ZipFile) -> list[dict[str, Any]]:
    """Return what is kept of the schemas of a jar, by name."""
    paths = [
        p for p in archive.namelist() if re.fullmatch(r"common/(message|metadata)/\w+\.json", p)
    ]
    found = [json.loads(_COMMENT.sub("", archive.read(path).decode())) for path in paths]
    controllers = {_subject(one) for one in found if "controller" in one.get("listeners", ())}
    requests = controllers | AGENT
    kept = [
        _without(one)
        for one in found
        if one["validVersions"] != "none"
        and (
            one["type"] in {"header", "metadata"}
            or one["name"] in DATA
            or _subject(one) in requests
        )
    ]
    return sorted(kept, key=lambda schema: str(schema["name"]))


def _subject(schema: dict[str, Any]) -> str:
    """Return the name that a request and its response share."""
    return re.sub(r"(Request|Response)$", "", schema["name"])


def _without(part: Any) -> Any:
    if isinstance(part, list):
        return [_without(one) for one in part]
    if isinstance(part, dict):
        return {key: _without(value) for key, value in part.items() if key not in _LEFT_OUT}
    return part


def main() -> None:
    """Write both files."""
    text, notice = made()
    FILE.write_text(text, encoding="utf-8")
    NOTICE.write_text(notice, encoding="utf-8")


if __name__ == "__main__":
    main()
