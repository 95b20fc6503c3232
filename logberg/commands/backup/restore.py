"""`logberg backup restore`."""

import os
import time
from pathlib import Path

import click

from logberg.backups.folders import restore_folders
from logberg.backups.places import open_backup
from logberg.backups.reading import BackupFile, read_backup_header
from logberg.backups.restoring import Restored, RestoreOrder
from logberg.cli.expected import expected_failures
from logberg.cli.failure import Failure
from logberg.cli.login import login_here
from logberg.cli.output import facts, output_option, print_json, say, show
from logberg.cli.progress import OnProgress, progress
from logberg.commands.backup.shared import at_option, backup_argument, failing, moment_of
from logberg.processes.settings.node_settings import LoadedController, NodeOptions, load_controller
from logberg.processes.settings.settings_files import resolve
from logberg.processes.settings.shared_settings import host_and_port
from quorum.api import Voter
from runtime.randomness import from_system

_DIRECTORY_BYTES = 16


@click.command("restore")
@backup_argument
@click.option(
    "--config",
    "files",
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    help="A controller's configuration file. Repeatable.",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Make FOLDER/controller-N for every controller in the file, to be moved to its machine. "
    "Without it, the folders are those that the files name as `data`.",
)
@at_option
@click.option("--reason", default="", help="Why. The log keeps the text.")
@output_option
def command(
    *,
    backup: str,
    files: tuple[Path, ...],
    into: Path | None,
    at: str | None,
    reason: str,
    output: str,
) -> None:
    """Make the folders of all controllers from a backup, as a new generation of the cluster.

    Nothing is written over: the folders must not be there, or be empty. Controllers of the
    generation before are refused by the restored ones. Stop them before you start these.
    """
    with expected_failures():
        loaded = [load_controller(NodeOptions((file,))) for file in files]
    folders = _folders(loaded, into)
    settings = loaded[0].settings
    with failing(), progress("restoring") as on_progress:
        found = _restore(open_backup(backup), loaded[0], folders, at, reason, on_progress)
    if output == "json":
        print_json(_in_json(found, folders))
        return
    start = found.facts.header.start.log_end
    show(
        facts(
            [
                ("cluster", settings.cluster_id),
                ("restored", f"offsets {start} to {found.kept.log_end}"),
                ("generation", found.generation),
                ("log end", found.end.log_end),
                ("head", found.end.head.hex()),
                *((f"controller {n}", str(folder)) for n, folder in folders.items()),
            ]
        )
    )
    say("start the controllers on these folders, and none of the old ones")


def _folders(loaded: list[LoadedController], into: Path | None) -> dict[int, Path]:
    """Return the folder of each controller, by its number. Raises Failure."""
    first = loaded[0].settings
    numbers = sorted(peer.node_id for peer in first.controllers)
    for one in loaded[1:]:
        if (one.settings.cluster_id, one.settings.controllers) != (
            first.cluster_id,
            first.controllers,
        ):
            raise Failure(f"{one.file} lists other controllers than {loaded[0].file}")
    if into is not None:
        return {n: into / f"controller-{n}" for n in numbers}
    named = {one.settings.node_id: resolve(one.file, one.settings.data) for one in loaded}
    missing = [str(n) for n in numbers if n not in named]
    if missing:
        raise Failure(
            f"the cluster also has controller {', '.join(missing)}: give their --config too, or "
            "make all folders here with --into, and move each to its machine"
        )
    return dict(sorted(named.items()))


def _restore(
    file: BackupFile,
    loaded: LoadedController,
    folders: dict[int, Path],
    at: str | None,
    reason: str,
    on_progress: OnProgress,
) -> Restored:
    settings, random = loaded.settings, from_system()
    voters = tuple(
        Voter(
            peer.node_id,
            random.randbytes(_DIRECTORY_BYTES),
            *host_and_port(peer.quorum, "controllers.quorum"),
        )
        for peer in settings.controllers
    )
    return restore_folders(
        file,
        folders,
        RestoreOrder(
            voters, f"User:{login_here()}", reason, int(time.time() * 1000), os.urandom(16)
        ),
        cluster_id=settings.cluster_id,
        segment_bytes=settings.segment_bytes,
        moment=moment_of(read_backup_header(file), at),
        on_progress=on_progress,
    )


def _in_json(found: Restored, folders: dict[int, Path]) -> dict[str, object]:
    return {
        "clusterId": found.facts.header.cluster_id,
        "keptTo": found.kept.log_end,
        "logEnd": found.end.log_end,
        "head": found.end.head.hex(),
        "generation": found.generation,
        "epoch": found.end.epoch,
        "checkpoint": found.checkpoint,
        "folders": {str(n): str(folder) for n, folder in folders.items()},
    }
