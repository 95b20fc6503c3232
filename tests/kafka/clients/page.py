"""Writes docs/kafka/clients.md: `python -m tests.kafka.clients.page`.

Rule: what stands on the page was printed by a run, on a cluster that this command starts. A call
that did not end as its table says makes the run fail, and the page stays as it is.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from logberg.kafka.jars import DEFAULT_VERSION
from tests.kafka.clients.aiokafka_calls import AIOKAFKA
from tests.kafka.clients.calls import ClientCall, Printed, check
from tests.kafka.clients.cluster import access, client_cluster, write_properties
from tests.kafka.clients.confluent_calls import CONFLUENT
from tests.kafka.clients.java_commands import JAVA_COMMANDS
from tests.kafka.clients.kafka_python_calls import KAFKA_PYTHON
from tests.kafka.clients.kcat_commands import kcat_version, run_kcat
from tests.kafka.clients.lasting import lasting
from tests.kafka.clients.libraries import VERSIONS, install, run_calls
from tests.kafka.tools.commands import ToolCommand
from tests.kafka.tools.page import run_all
from tests.kafka.tools.running import ToolRunner, address_at
from tests.process.running_cluster import RunningCluster

PAGE: Final = Path(__file__).parents[3] / "docs" / "kafka" / "clients.md"
LIBRARIES: Final = (CONFLUENT, KAFKA_PYTHON, AIOKAFKA)
_HEAD: Final = """# Kafka's clients on our agents

No Kafka broker ran here. Three of our controllers and three of our agents did, as
`logberg up --kafka` starts them: with TLS, and a login by token (SASL_SSL, PLAIN). Unmodified
clients asked the agents. An agent answers metadata and configs from its own image, and passes
changes on to the controllers ([ADR 0074](../adr/0074-kafka-clients-of-agents.md)). Below is what
each client printed. What changes from run to run (ids, times, ports) is left out, and so are stack
traces. [differences.md](differences.md) lists what is not as with Kafka.

The lines below are generated: `python -m tests.kafka.clients.page` runs the calls again. It needs
kcat, a JDK 17 and Maven, and installs the libraries for Python by pip.
"""
Runs = list[tuple[ClientCall, Printed]]


def checked(runs: Iterator[tuple[ClientCall, Printed]]) -> Runs:
    """Return all runs. Raises UnexpectedEndError."""
    found = []
    for call, printed in runs:
        check(call, printed)
        found.append((call, printed))
    return found


def java_runs(cluster: RunningCluster, folder: Path) -> list[tuple[ToolCommand, str]]:
    """Run the tools. Raises UnexpectedEndError."""
    names = access(cluster)
    config = write_properties(folder, names)
    runner = ToolRunner(names["SERVERS"], "", folder, DEFAULT_VERSION, config)
    runs = run_all(runner, JAVA_COMMANDS)
    return [(command, lasting(printed.text)) for command, printed in runs]


def _lines(prompt: str, runs: Runs) -> str:
    parts = []
    for call, printed in runs:
        shown = f"\n{printed.text}" if printed.text else ""
        parts.append(f"\n```\n{prompt}{call.text}{shown}\n```\n")
    return "".join(parts)


def _section(title: str, setup: str, lines: str) -> str:
    before = f"\n```\n{setup.strip()}\n```\n" if setup else ""
    return f"\n## {title}\n{before}{lines}"


def write_page(cluster: RunningCluster, python: Path, folder: Path) -> str:
    """Run everything, and return the page."""
    names = access(cluster)
    parts = [_HEAD]
    for table in LIBRARIES:
        runs = checked(run_calls(python, table, names))
        title = f"{table.library} {VERSIONS[table.library]}"
        parts.append(_section(title, table.setup, _lines(">>> ", runs)))
    tools = java_runs(cluster, folder)
    lines = "".join(
        f"\n```\n$ {tool_line(command)}{f'{chr(10)}{text}' if text else ''}\n```\n"
        for command, text in tools
    )
    parts.append(_section(f"Kafka's command line tools {DEFAULT_VERSION}", "", lines))
    cluster.create("orders", partitions=2, replication_factor=2)
    runs = checked(run_kcat(names))
    parts.append(_section("kcat", kcat_version(), _lines("$ kcat -b SERVERS ", runs)))
    return "".join(parts)


def tool_line(command: ToolCommand) -> str:
    """Return a tool's command as a user types it."""
    tool, *arguments = command.words.split()
    split = address_at(tool, arguments)
    where = ["--bootstrap-server", "SERVERS", "--command-config", "client.properties"]
    return " ".join([tool, *arguments[:split], *where, *arguments[split:]])


def main(_arguments: Sequence[str]) -> int:
    """Start a cluster, run the tables against it, and write the page."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        python = install(folder / "venv")
        with client_cluster(folder) as cluster:
            text = write_page(cluster, python, folder)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
