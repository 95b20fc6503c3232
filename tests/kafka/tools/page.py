"""Writes docs/kafka/tools.md: `python -m tests.kafka.tools.page SERVER CONTROLLER [VERSION]`.

Rule: what stands on the page was printed by a run. A command that did not end as the table says
makes the run fail, and the page stays as it is.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from logberg.kafka.jars import DEFAULT_VERSION
from tests.kafka.tools.commands import COMMANDS, ToolCommand
from tests.kafka.tools.running import Printed, ToolRunner

PAGE: Final = Path(__file__).parents[3] / "docs" / "kafka" / "tools.md"
_HEAD: Final = """# Kafka's command line tools on our controllers

Kafka's own tools of version {version} ran against three of our controllers and real Kafka brokers
of the same version, one after another. Below is what each printed. `SERVER` is a broker: it
forwards to our leader what changes something. `CONTROLLER` is one of our controllers: the tools go
straight to it, where Kafka allows that. What changes from run to run (ids, times, ports) is left
out, and so are stack traces. [differences.md](differences.md) lists what is not as with Kafka's
controllers.

The lines below are generated: `tests/kafka/tools` runs the commands again.

[users.md](users.md) has what needs more than a plain listener: `kafka-delegation-tokens` (needs
SASL on the broker), and `kafka-acls` to a broker (needs an authorizer there).
"""


class UnexpectedEndError(Exception):
    """A command failed that should work, or worked though it should be refused."""


def run_all(
    runner: ToolRunner, commands: Sequence[ToolCommand] = COMMANDS
) -> Iterator[tuple[ToolCommand, Printed]]:
    """Run a table. Raises UnexpectedEndError."""
    for command in commands:
        printed = runner.run(command)
        if command.until not in printed.text or refused(command, printed) != command.fails:
            raise UnexpectedEndError(f"{command.words}\n{printed.text}")
        yield command, printed


def refused(command: ToolCommand, printed: Printed) -> bool:
    """Return whether a command was refused. Some tools end with 0 after an error."""
    return not printed.worked or "Exception" in printed.text


def page_of(version: str, runs: Sequence[tuple[ToolCommand, Printed]]) -> str:
    """Return the page's text."""
    parts = [_HEAD.format(version=version)]
    tool = ""
    for command, printed in sorted(runs, key=lambda run: run[0].words.split()[0]):
        name, *arguments = command.words.split()
        if name != tool:
            tool = name
            parts.append(f"\n## {tool}\n")
        where = (
            "--bootstrap-controller CONTROLLER"
            if command.controller
            else "--bootstrap-server SERVER"
        )
        shown = f"\n{printed.text}" if printed.text else ""
        parts.append(f"\n```\n$ {name} {where} {' '.join(arguments)}{shown}\n```\n")
    return "".join(parts)


def main(arguments: Sequence[str]) -> int:
    """Run the table against a cluster that is up, and write the page."""
    server, controller, *rest = arguments
    version = rest[0] if rest else DEFAULT_VERSION
    with tempfile.TemporaryDirectory() as folder:
        runs = list(run_all(ToolRunner(server, controller, Path(folder), version)))
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page_of(version, runs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
