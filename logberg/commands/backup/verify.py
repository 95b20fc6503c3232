"""`logberg backup verify`."""

import click

from logberg.backups.places import open_backup
from logberg.backups.reading import verify_backup
from logberg.cli.output import facts, output_option, print_json, say, show
from logberg.cli.progress import progress
from logberg.commands.backup.shared import (
    backup_argument,
    facts_in_json,
    facts_in_words,
    failing,
)


@click.command("verify")
@backup_argument
@output_option
def command(backup: str, output: str) -> None:
    """Verify every byte of a backup: its frames, its digest, its checkpoint, its log's chain.

    `logberg backup drill` also replays the log.
    """
    with failing(), progress("verifying") as on_progress:
        file = open_backup(backup)
        found = verify_backup(file, on_progress)
    if output == "json":
        print_json({"ok": True, **facts_in_json(file.location, found)})
        return
    show(facts(facts_in_words(found)))
    say("sound: every byte was verified")
