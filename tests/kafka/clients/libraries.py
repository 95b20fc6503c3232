"""Client libraries of Python in an environment of their own, and their calls in it.

Rule: they are no dependencies of ours. pip installs them, as `requirements/kafka-clients.lock` has
them, into a folder that goes when the test ends.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from releasing.locks import read_lock
from tests.kafka.clients.calls import ClientCall, Printed, UnexpectedEndError
from tests.kafka.clients.lasting import lasting

LOCK: Final = Path(__file__).resolve().parents[3] / "requirements" / "kafka-clients.lock"
VERSIONS: Final = {entry.name: entry.version for entry in read_lock(LOCK)}
_INSTALL_S: Final = 300
_CALLS_S: Final = 300
_DRIVER: Final = Path(__file__).with_name("driver.py")


class LibraryCalls(NamedTuple):
    """The table of one library."""

    library: str
    """Its name at the package index."""
    setup: str
    """Statements before the first call. They know SERVERS, CA, MECHANISM, USER and PASSWORD."""
    calls: tuple[ClientCall, ...]
    teardown: str = "pass"


def install(folder: Path) -> Path:
    """Install the libraries, and return the Python that has them."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_INSTALL_S)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-input"]
    command += ["--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_INSTALL_S)
    assert done.returncode == 0, f"pip could not install {LOCK.name}:\n{done.stderr[-2_000:]}"
    return python


def run_calls(
    python: Path, table: LibraryCalls, names: Mapping[str, str]
) -> Iterator[tuple[ClientCall, Printed]]:
    """Run the calls of a table, and yield each with what it printed.

    Raises UnexpectedEndError if the driver ended before the last call.
    """
    wanted = {
        "names": dict(names),
        "setup": table.setup,
        "teardown": table.teardown,
        "calls": [{"text": call.text, "until": call.until} for call in table.calls],
    }
    done = subprocess.run(
        [str(python), str(_DRIVER)],
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        check=False,
        timeout=_CALLS_S,
    )
    lines: Sequence[str] = done.stdout.splitlines()
    found = [json.loads(line) for line in lines if line.startswith('{"printed"')]
    for call, one in zip(table.calls, found, strict=False):
        yield call, Printed(lasting(one["printed"]), one["refused"])
    if len(found) < len(table.calls) or done.returncode != 0:
        raise UnexpectedEndError(f"{table.library}: {done.stderr[-3_000:]}")
