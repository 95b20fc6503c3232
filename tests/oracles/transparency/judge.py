"""Builds the judge with Go's ordinary client, keeps it in a cache folder, and asks it."""

import base64
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.peers.tools import go_program

HERE = Path(__file__).parent / "go"
_MOST_S = 280


def judge() -> Path:
    """Return the program. Raises NoToolError if it is not built and can't be."""
    return go_program("transparency", HERE)


def ask(program: Path, questions: Iterable[dict[str, Any]]) -> list[str]:
    """Return what is wrong with each; empty: it is right."""
    done = subprocess.run(
        [str(program)],
        input="".join(json.dumps(_plain(one)) + "\n" for one in questions),
        capture_output=True,
        text=True,
        check=True,
        timeout=_MOST_S,
    )
    return [json.loads(line)["error"] for line in done.stdout.splitlines()]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
