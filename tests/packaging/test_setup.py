"""An interrupted set-up does not count as done, whichever of its steps failed.

The Makefile is the real one. A stand-in for the new environment's `python` records the calls of
pip, and fails at one step, as pip does without a network.
"""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/asked"
test "$(wc -l < "$(dirname "$0")/asked")" != {fails_at}
"""


def environment(folder: Path, fails_at: int) -> Path:
    """A new environment whose pip fails at its nth call; 0 never."""
    venv = folder / ".venv"
    (venv / "bin").mkdir(parents=True, exist_ok=True)
    python = venv / "bin" / "python"
    python.write_text(PYTHON.format(fails_at=fails_at))
    python.chmod(0o755)
    (venv / "bin" / "asked").unlink(missing_ok=True)
    if not (venv / ".ready-venv").exists():
        (venv / ".ready-venv").touch()
    return venv


def set_up(venv: Path) -> tuple[int, list[str]]:
    """Make all that `make test` makes. Returns the exit code and what pip was asked."""
    done = subprocess.run(
        ["make", "--no-print-directory", f"VENV={venv}", f"{venv}/.ready-dev"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        check=False,
    )
    return done.returncode, (venv / "bin" / "asked").read_text().splitlines()


def test_each_package_comes_from_a_lock(tmp_path: Path) -> None:
    code, asked = set_up(environment(tmp_path, fails_at=0))
    assert code == 0
    locked = [call for call in asked if "--no-deps" not in call]
    assert [call.rpartition(" ")[2] for call in locked] == [
        f"requirements/{name}.lock" for name in ("build", "run", "dev")
    ]
    assert all("--require-hashes" in call for call in locked)
    (ours,) = set(asked) - set(locked)
    assert ours.endswith("--no-deps --no-build-isolation --editable .")


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_set_up_that_failed_is_done_again(tmp_path: Path, step: int) -> None:
    code, asked = set_up(environment(tmp_path, fails_at=step))
    assert code != 0
    assert len(asked) == step
    code, again = set_up(environment(tmp_path, fails_at=0))
    assert code == 0
    # Step 4 has a mark of its own: the three before it are not repeated.
    assert len(again) == (1 if step == 4 else 4)


def test_a_renewal_that_failed_is_done_again(tmp_path: Path) -> None:
    venv = environment(tmp_path, fails_at=0)
    assert set_up(venv)[0] == 0
    (venv / "bin" / "logberg").touch()
    os.utime(venv / ".ready-run", (0, 0))
    code, asked = set_up(environment(tmp_path, fails_at=2))
    assert (code != 0, len(asked)) == (True, 2)
    code, asked = set_up(environment(tmp_path, fails_at=0))
    assert (code, len(asked)) == (0, 4)
