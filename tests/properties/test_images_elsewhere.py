"""The same log gives the same state in another process, hash seed and Python."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

PROGRAM = """
import sys
from hashlib import sha256
sys.path.insert(0, ".")
from metadata.codec import encode_records
from metadata.image import EMPTY, MetadataDelta, image_to_records
from tests.histories import History
for seed in range(12):
    history, image = History(seed), EMPTY
    batches = history.batches(30)
    last = history.close_transaction()
    for batch in batches + ([last] if last else []):
        delta = MetadataDelta(image)
        delta.replay_all(batch.records, batch.base_offset)
        delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
        image = delta.apply()
    snapshot = sha256(encode_records(list(image_to_records(image)))).hexdigest()
    print(image.state_hash.encode().hex(), snapshot)
"""


def told_by(python: str, hash_seed: str) -> str:
    """Hashes of twelve histories, as an interpreter of that hash seed computes them."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [python, "-c", PROGRAM],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


@cache
def expected() -> str:
    return told_by(sys.executable, "0")


def other_pythons() -> list[str]:
    """Interpreters of other versions: from QUORATE_TEST_PYTHONS, the path and pyenv."""
    named = os.environ.get("QUORATE_TEST_PYTHONS", "").split(os.pathsep)
    found = [shutil.which(f"python3.{minor}") for minor in (11, 12, 13, 14)]
    managed = sorted(Path.home().glob(".pyenv/versions/3.1[1-9]*/bin/python"))
    return [str(python) for python in (*named, *found, *managed) if python]


def can_run(python: str) -> bool:
    """Whether msgspec is there, and the version isn't the one that runs the tests."""
    probe = "import msgspec, sys; print(sys.version_info[:2])"
    done = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() != str(sys.version_info[:2])


@pytest.mark.parametrize("hash_seed", ["1", "4711", "random"])
def test_the_state_does_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    """Two controllers with other hash seeds would differ if replay walked an unordered set."""
    told = told_by(sys.executable, hash_seed)
    assert told.count("\n") == 12
    assert told == expected()


def test_the_state_does_not_depend_on_the_python() -> None:
    """A cluster may be upgraded node by node, its Python too."""
    pythons = [python for python in other_pythons() if can_run(python)]
    if not pythons:
        pytest.skip("no other Python with msgspec here (QUORATE_TEST_PYTHONS can name some)")
    for python in pythons:
        assert told_by(python, "random") == expected(), python
