"""Writes `kafka_plan.json`: what the import reads from `kafka_tree.json`."""

import json
from pathlib import Path
from typing import Any

import msgspec

from logberg.importing.kafka_layout import read_kafka
from metadata.messages.records_json import record_to_json
from tests.unit.logberg.importing.trees import kafka_tree

GOLDEN = Path(__file__).parent / "kafka_plan.json"


def shown_plan() -> dict[str, Any]:
    """Return records and manifest of the tree, as JSON has them. The secrets are made up."""
    tree = kafka_tree()
    plan = read_kafka(tree)
    manifest = plan.manifest("zookeeper://test/kafka", tree.last_zxid, len(tree))
    return {
        "manifest": json.loads(msgspec.json.encode(manifest)),
        "records": [record_to_json(record, show_secrets=True) for record in plan.records],
    }


if __name__ == "__main__":
    shown = shown_plan()
    records = ",\n".join(json.dumps(each, ensure_ascii=False) for each in shown["records"])
    manifest = json.dumps(shown["manifest"], indent=1, ensure_ascii=False)
    GOLDEN.write_text(f'{{"manifest": {manifest},\n"records": [\n{records}\n]}}\n')
