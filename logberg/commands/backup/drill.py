"""`logberg backup drill`."""

import tempfile
from pathlib import Path

import click

from logberg.backups.drill import Drilled, drill
from logberg.backups.places import open_backup
from logberg.backups.reading import read_backup_header
from logberg.cli.failure import Failure
from logberg.cli.output import facts, output_option, print_json, say, show
from logberg.cli.progress import progress_of_steps
from logberg.commands.backup.shared import at_option, backup_argument, failing, moment_of
from runtime.randomness import from_system


@click.command("drill")
@backup_argument
@at_option
@click.option(
    "--in",
    "scratch",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Make the temporary folder in this one, if the system's has too little room.",
)
@output_option
def command(backup: str, at: str | None, scratch: Path | None, output: str) -> None:
    """Restore a backup into a temporary folder, verify it, replay its log, and compare the state.

    The folder is removed at the end. Exit code 1 if anything is wrong.
    """
    with (
        failing(),
        tempfile.TemporaryDirectory(prefix="logberg-drill-", dir=scratch) as folder,
        progress_of_steps("restoring") as on_step,
    ):
        file = open_backup(backup)
        moment = moment_of(read_backup_header(file), at)
        found = drill(file, Path(folder), from_system().randbytes(16), moment, on_step)
    if output == "json":
        print_json(_in_json(found))
    else:
        _show(found)
    if not found.ok:
        raise Failure(f"the backup can't be trusted: {found.problems[0]}")


def _show(found: Drilled) -> None:
    show(
        facts(
            [
                ("restored", f"to offset {found.restored.kept.log_end}, {found.restore_s:.2f} s"),
                ("verified and replayed", f"{found.verify_s:.2f} s"),
                ("loaded as at a start", f"{found.load_s:.2f} s"),
                ("state hash", found.state_hash.hex() or "not known: the log begins later"),
                ("checkpoints proved by replay", found.checkpoints_proved),
            ]
        )
    )
    if found.ok:
        say("the backup can be restored: both ways give one state")


def _in_json(found: Drilled) -> dict[str, object]:
    return {
        "ok": found.ok,
        "problems": list(found.problems),
        "keptTo": found.restored.kept.log_end,
        "stateHash": found.state_hash.hex(),
        "checkpointsProved": found.checkpoints_proved,
        "restoreSeconds": found.restore_s,
        "verifySeconds": found.verify_s,
        "loadSeconds": found.load_s,
    }
