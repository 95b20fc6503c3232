"""`logberg kafka metadata-log`: a log as Kafka's own programs read it."""

from pathlib import Path

import click

from audit.places.replicas import one_replica
from kafka_listener.projection.clear_values import ClearValues
from logberg.cli.failure import Failure
from logberg.cli.output import say, show, table
from logberg.client.cluster_key_file import read_cluster_key, with_subject_keys
from logberg.commands.audit.failures import failing, print_notes, where_argument
from logberg.commands.audit.local_paths import LocalPath
from logberg.kafka.metadata_logs import METADATA_LOG, voters_of, write_log
from runtime.disk.secret_file import SecretFileError


@click.command("metadata-log")
@where_argument
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    required=True,
    help=f"Folder that gets {METADATA_LOG}. It must not hold one.",
)
@click.option(
    "--cluster-key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the cluster key, if the log holds secrets: Kafka's programs know no sealing.",
)
def command(where: str, out: Path, cluster_key: Path | None) -> None:
    """Write a whole log as Kafka keeps it in __cluster_metadata, with the same offsets.

    Kafka's own tools can read it (kafka-dump-log, kafka-metadata-shell), and Kafka's own
    controllers can go on with it. The files hold secrets in clear; only you can read them.
    """
    try:
        key = None if cluster_key is None else read_cluster_key(cluster_key)
    except SecretFileError as error:
        raise Failure(str(error)) from None
    if (out / METADATA_LOG).exists():
        raise Failure(f"{out / METADATA_LOG} is there already; name another folder with --out")
    with failing():
        replica = one_replica(where)
        reader = replica.reader()
        values = ClearValues(None if key is None else with_subject_keys(key, replica.disk))
        if reader.log_start > 0:
            raise Failure(
                f"the log there begins at offset {reader.log_start}, so it is not whole; name a "
                "controller that has the beginning"
            )
        written = write_log(reader, values, out)
        voters = voters_of(reader)
        print_notes(reader.notes)
    if written.kept_sealed:
        raise Failure(
            f"{written.kept_sealed} records in {written.folder} hold secrets that stay sealed, and "
            "Kafka can't read those; remove the folder, and name the key with --cluster-key"
        )
    say(f"{written.folder}: {written.end} records")
    show(table(["controller", "directory.id", "addresses"], voters))
