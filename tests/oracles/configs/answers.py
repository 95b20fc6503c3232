"""Keeps what Kafka answered: `cases.jsonl`, a case a line, and `values.jsonl`, a key a line.

python -m tests.oracles.configs.answers < answers.jsonl
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES, VALUES = HERE / "cases.jsonl", HERE / "values.jsonl"


def broker_refuses(row: dict[str, Any]) -> bool:
    """Tell whether a broker refuses to forward a change of brokers' configs (ConfigAdminManager).

    It would answer INVALID_REQUEST.
    """
    return any(row.get("brokerChecks", ()))


def kept(rows: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the cases, and the values of each key."""
    cases, keys = [], {}
    for row in rows:
        if row["about"] != "value":
            cases.append(row)
            continue
        kind, _, key, _, value = row["ask"][0]
        code = "INVALID_REQUEST" if broker_refuses(row) else row["answers"][0][2]
        empty: dict[str, Any] = {"kind": kind, "key": key, "accepted": [], "refused": {}}
        mine = keys.setdefault((kind, key), empty)
        if code == "NONE":
            mine["accepted"].append(value)
        else:
            mine["refused"][value] = code
    return cases, list(keys.values())


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    for path, found in zip((CASES, VALUES), kept(map(json.loads, sys.stdin)), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in found))
