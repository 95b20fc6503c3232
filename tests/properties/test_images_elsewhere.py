"""The same log gives the same state in another process, hash seed and Python."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from releasing.locks import read_lock

REPOSITORY = Path(__file__).parents[2]
RUN_LOCK = REPOSITORY / "requirements" / "run.lock"

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
    """Interpreters of other versions: from LOGBERG_TEST_PYTHONS, the path and pyenv."""
    named = os.environ.get("LOGBERG_TEST_PYTHONS", "").split(os.pathsep)
    found = [shutil.which(f"python3.{minor}") for minor in (11, 12, 13, 14)]
    managed = sorted(Path.home().glob(".pyenv/versions/3.1[1-9]*/bin/python"))
    return [str(python) for python in (*named, *found, *managed) if python]


def version_of(python: str) -> tuple[int, ...]:
    """What it is; () when it can't run."""
    probe = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else ()


def others_by_version() -> dict[tuple[int, ...], str]:
    """One interpreter for each version that Logberg supports and that isn't this one."""
    found = {version_of(python): python for python in other_pythons()}
    this = sys.version_info[:2]
    return {version: found[version] for version in sorted(found) if (3, 11) <= version != this}


def with_msgspec(python: str, folder: Path) -> str:
    """A virtual environment of that Python that can replay."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True, timeout=120)
    inside = str(folder / "bin" / "python")
    (locked,) = [one for one in read_lock(RUN_LOCK) if one.name == "msgspec"]
    wanted = folder / "wanted.lock"
    hashes = " ".join(f"--hash=sha256:{one}" for one in locked.hashes)
    wanted.write_text(f"msgspec=={locked.version} {hashes}\n")
    command = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "-r", str(wanted)]
    subprocess.run(command, check=True, timeout=240)
    return inside


@pytest.mark.parametrize("hash_seed", ["1", "4711", "random"])
def test_the_state_does_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    """Two controllers with other hash seeds would differ if replay walked an unordered set."""
    told = told_by(sys.executable, hash_seed)
    assert told.count("\n") == 12
    assert told == expected()


OTHERS = others_by_version()


@pytest.mark.slow
@pytest.mark.parametrize("version", OTHERS, ids=lambda version: ".".join(map(str, version)))
def test_the_state_does_not_depend_on_the_python(version: tuple[int, ...], tmp_path: Path) -> None:
    """A cluster may be upgraded node by node, its Python too."""
    python = with_msgspec(OTHERS[version], tmp_path / "venv")
    assert told_by(python, "random") == expected()


def test_every_other_python_that_is_here_was_asked() -> None:
    """A machine with one Python only has nobody to ask, and that is all right."""
    assert all(version >= (3, 11) for version in OTHERS)
    assert sys.version_info[:2] not in OTHERS
