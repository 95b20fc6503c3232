"""Builds the judge with Go's ordinary client, keeps it in a cache folder, and asks it."""

import base64
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.peers.tools import NoToolError, cache

HERE = Path(__file__).parent / "go"
_MOST_S = 280


def judge() -> Path:
    """Return the program. Raises NoToolError if it is not built and can't be."""
    summed = hashlib.sha256()
    for path in sorted(HERE.iterdir()):
        summed.update(path.name.encode() + b"\0" + path.read_bytes())
    program = cache() / f"transparency-{summed.hexdigest()[:12]}"
    if not program.is_file():
        go = shutil.which("go")
        if go is None:
            raise NoToolError(
                "'go' is not here. The test needs Go 1.25 or later: https://go.dev/dl"
            )
        made = program.with_suffix(".new")
        done = subprocess.run(
            [go, "build", "-o", str(made), "."],
            cwd=HERE,
            capture_output=True,
            text=True,
            check=False,
            timeout=_MOST_S,
        )
        if done.returncode != 0:
            raise NoToolError(f"go build failed: {(done.stdout + done.stderr)[-2000:]}")
        made.replace(program)
    return program


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
