"""`logberg demo --kafka`, as a newcomer runs it: every claim holds, and nothing is left running."""

import re
import subprocess
import sys
from pathlib import Path

from tests.process.leftovers import nothing_is_left

CLAIMS = 12


def test_every_claim_holds(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "logberg", "demo", "--kafka", "--data", str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    said = done.stdout
    assert done.returncode == 0, done
    assert said.count("✓") == CLAIMS, said
    assert re.search(r"committed the next change \d+ ms after the kill", said)
    assert re.search(r"4,000 messages sent .* all acknowledged, and all consumed", said)
    assert re.search(r"Broker:10[123] for User:alice \(certificate from 127.0.0.1\)", said)
    assert "one digest" in said
    assert re.search("proved: 3 logs, .* one state hash, one log for Kafka", said)
    commands = [
        line.strip() for line in said.splitlines() if line.startswith("  ") and "✓" not in line
    ]
    assert len(commands) == 3, said
    assert all(str(folder) in command for command in commands)
    nothing_is_left(folder)
