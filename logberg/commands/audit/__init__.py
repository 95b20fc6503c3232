"""`logberg audit`: what the log says, for people who must explain it.

Rule: as in `logberg.cli`, a subcommand is imported when it is called: nobody who asks for a state
waits for a plotting library, and nobody needs Spark who doesn't ask for it.
"""

import importlib

import click
from click.shell_completion import CompletionItem

from logberg.suggesting_group import SuggestingGroup

_COMMANDS = {
    "state": "What the cluster was, at an offset or a time.",
    "log": "The log in words, filtered by time, principal, operation, resource, request.",
    "who": "Who changed a thing, when and why.",
    "history": "Every change of one topic, partition, broker, config or ACL, with its cause.",
    "diff": "What changed between two offsets, times, snapshots or folders.",
    "availability": "How long partitions and brokers were away.",
    "verify": "Frames, checksums, chain, offsets, epochs and snapshots of one or more logs.",
    "compare": "Hold several controllers' logs against each other; the first bad offset.",
    "follow": "The log as it grows.",
    "run": "A job of the audit, by the embedded engine or by Spark.",
    "report": "One HTML page for people.",
    "generate": "A history of a made-up cluster, to try all this on.",
}


class _Lazy(SuggestingGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"logberg.commands.audit.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=text)
            for name, text in _COMMANDS.items()
            if name.startswith(incomplete)
        ]


@click.group("audit", cls=_Lazy)
def command() -> None:
    """Ask the log: state at any moment, who changed what, proof that nobody tampered.

    WHERE is a controller's folder, that of `logberg up`, a copy, an archive (.tar, .tar.gz, .zip)
    or a URL of object storage (s3://…). Nothing in it is changed, and its node may be running.
    """
