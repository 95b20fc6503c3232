"""`logberg support-bundle`: what helpers need, in one file, without secrets."""

from pathlib import Path

import click

from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.failure import Failure
from logberg.cli.output import print_json, say
from logberg.operating.support_bundle import LocalFiles, gather_files, write_bundle
from runtime.disk.secret_file import SecretFileError

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command("support-bundle")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--config", "configs", type=_FILE, multiple=True, help="Add a configuration file.")
@click.option("--log-file", "logs", type=_FILE, multiple=True, help="Add the end of a process log.")
@click.option(
    "--folder",
    "folders",
    type=_FOLDER,
    multiple=True,
    help="Add names and sizes of a node's files.",
)
@click.option(
    "--batches",
    type=click.IntRange(0, 100_000),
    default=1_000,
    show_default=True,
    help="Add who did what, of the newest records of the log.",
)
@cluster_options
def command(
    *,
    file: Path,
    configs: tuple[Path, ...],
    logs: tuple[Path, ...],
    folders: tuple[Path, ...],
    batches: int,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Gather the cluster's state in FILE, a new .tar.gz, to be sent to who helps you.

    It has the status, figures and checks of every controller, and who did what in the log's newest
    records. It has no token, key, password, value of a config or content of a record. Look into it
    before you send it: names of topics, users and machines are in it.
    """
    if file.exists():
        raise Failure(f"{file} is there already; choose another name")
    local = LocalFiles(configs, logs, folders)
    files = cluster.ask(lambda client: gather_files(client, cluster.urls, local, batches))
    try:
        write_bundle(file, files)
    except SecretFileError as error:
        raise Failure(str(error)) from None
    if output == "json":
        print_json({"file": str(file), "files": sorted(files)})
        return
    say(f"wrote {file}: {len(files)} files")
    for name in sorted(files):
        say(f"  {name}")
