"""`logberg backup create`."""

import time
from collections.abc import Callable
from pathlib import Path

import click

from audit.places.replicas import one_replica
from logberg.backups.backup_format import BackupError
from logberg.backups.making import WantedBackup
from logberg.backups.places import BackupPlace, place_of
from logberg.backups.remote_source import with_remote_source
from logberg.backups.sources import BackupSource, FolderSource
from logberg.backups.store import (
    Listed,
    Made,
    create_backup,
    list_backups,
    thin_out,
    young_enough,
)
from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.failure import Failure
from logberg.cli.output import facts, note, print_json, say, show
from logberg.cli.progress import OnStep, progress_of_steps
from logberg.client.client_errors import ClientError
from logberg.commands.backup.shared import facts_in_json, facts_in_words, failing, in_json
from logberg.version import VERSION
from runtime.sockets.tls import TlsFilesError

Found = Made | Listed
"""The backup that was made, or the one that is young enough."""


@click.command("create")
@click.option(
    "--to",
    "where",
    required=True,
    metavar="WHERE",
    envvar="LOGBERG_BACKUP_TO",
    show_envvar=True,
    help="A folder, or s3://BUCKET/PATH.",
)
@click.option(
    "--from-folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Read this controller's folder instead of asking controllers. Its node may be running.",
)
@click.option(
    "--from",
    "from_offset",
    type=click.IntRange(min=0),
    default=0,
    metavar="OFFSET",
    help="Take the log only from the segment on that holds this offset.",
)
@click.option(
    "--if-older-than",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Make none if the newest one there of this cluster is not so old yet.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="If a backup was made, remove all but the newest ones of this cluster.",
)
@cluster_options
def command(
    *,
    where: str,
    from_folder: Path | None,
    from_offset: int,
    if_older_than: float | None,
    keep: int | None,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Make a backup of the log and its newest checkpoint, read it back, and verify it.

    A controller that does not lead sends it, if there is one. All of its bytes are verified.
    """
    wanted = WantedBackup(int(time.time() * 1000), VERSION, from_offset)
    with failing(), progress_of_steps("backing up") as on_step:
        place = place_of(where)

        def use(source: BackupSource) -> Found:
            return _make(source, place, wanted, if_older_than, on_step)

        made = _from(cluster, from_folder, use)
        removed: list[str] = []
        if keep is not None and isinstance(made, Made):
            removed = thin_out(place, _cluster_of(made), keep, wanted.made_at_ms)
    _show(made, removed, output)


def _from(
    cluster: ClusterConnection, folder: Path | None, use: Callable[[BackupSource], Found]
) -> Found:
    if folder is not None:
        return use(FolderSource.of_replica(one_replica(str(folder))))
    try:
        return with_remote_source(
            cluster.urls,
            cluster.access,
            cluster.deadline_s,
            use,
            lambda why: note(f"{why}; another controller is asked"),
        )
    except ClientError as error:
        raise cluster.failure(error) from None
    except TlsFilesError as error:
        raise Failure(f"{error}; check --ca, --cert and --key") from None


def _make(
    source: BackupSource,
    place: BackupPlace,
    wanted: WantedBackup,
    if_older_than: float | None,
    on_step: OnStep,
) -> Found:
    listed = _listed(place, source.cluster_id)
    if if_older_than is not None:
        young = young_enough(listed, source.cluster_id, wanted.made_at_ms, if_older_than)
        if young is not None:
            return young
    return create_backup(source, place, wanted, on_step)


def _listed(place: BackupPlace, cluster_id: str) -> list[Listed]:
    """Return the backups in a place. Raises BackupError.

    A place that holds only another cluster's backups is refused: somebody named the wrong one.
    """
    listed = list_backups(place)
    clusters = [_cluster_of(each) for each in listed if each.header is not None]
    if clusters and cluster_id not in clusters:
        raise BackupError(
            f"{place.location} holds backups of cluster {clusters[-1]}, and this is "
            f"cluster {cluster_id}: name a place of its own"
        )
    return listed


def _cluster_of(found: Found) -> str:
    header = found.facts.header if isinstance(found, Made) else found.header
    assert header is not None
    return header.cluster_id


def _show(found: Found, removed: list[str], output: str) -> None:
    if output == "json":
        if isinstance(found, Made):
            said = facts_in_json(found.name, found.facts)
        else:
            assert found.header is not None
            said = in_json(found.name, found.size, found.header)
        print_json({"made": isinstance(found, Made), "removed": removed, "backup": said})
        return
    if isinstance(found, Made):
        show(facts([("backup", found.location), *facts_in_words(found.facts)]))
    else:
        say(f"{found.name} is not so old yet: no backup was made")
    for name in removed:
        say(f"removed {name}")
