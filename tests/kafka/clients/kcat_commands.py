"""What kcat is asked to do: it reads metadata, and has no administrators' requests."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Final

from tests.kafka.clients.calls import ClientCall, Printed
from tests.kafka.clients.lasting import lasting

_KCAT_S: Final = 60
KCAT_COMMANDS: Final = (
    ClientCall("-L", until="3 brokers"),
    ClientCall("-L -t orders", until='topic "orders" with 2 partitions'),
    ClientCall("-L -J -t orders"),
    ClientCall("-L -t missing"),
)
"""A topic `orders` with two partitions is there."""


def run_kcat(names: Mapping[str, str]) -> Iterator[tuple[ClientCall, Printed]]:
    """Run the table, and yield each command with what it printed."""
    program = shutil.which("kcat")
    assert program is not None, "kcat is not on PATH (Debian: apt install kcat)"
    options = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": names["CA"],
        "sasl.mechanisms": names["MECHANISM"],
        "sasl.username": names["USER"],
        "sasl.password": names["PASSWORD"],
    }
    secured = [part for key, value in options.items() for part in ("-X", f"{key}={value}")]
    for call in KCAT_COMMANDS:
        done = subprocess.run(
            [program, "-b", names["SERVERS"], *secured, *call.text.split()],
            capture_output=True,
            text=True,
            check=False,
            timeout=_KCAT_S,
        )
        yield call, Printed(lasting(done.stdout + done.stderr), done.returncode != 0)


def kcat_version() -> str:
    """Return the version that kcat says that it has."""
    done = subprocess.run(
        ["kcat", "-V"], capture_output=True, text=True, check=True, timeout=_KCAT_S
    )
    return next(line for line in done.stdout.splitlines() if line.startswith("Version"))
