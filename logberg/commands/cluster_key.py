"""`logberg cluster-key`."""

from pathlib import Path

import click

from logberg.cli.failure import Failure
from logberg.cli.output import say
from metadata.sealing import KEY_BYTES, ClusterKey
from runtime.disk.secret_file import SecretFileError, write_new_secret


@click.command("cluster-key")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def command(file: Path) -> None:
    """Draw a cluster key and write it to FILE, which must not exist.

    The key seals secrets in the log and makes the HMACs of delegation tokens. Copy the file to
    every controller, as cluster.key in its data folder, readable by its user only. Keep another
    copy apart from backups of the log: without the key, what it sealed is lost.
    """
    try:
        key = ClusterKey(write_new_secret(file, KEY_BYTES))
    except SecretFileError as error:
        raise Failure(str(error)) from None
    say(f"wrote {file}: cluster key {key.id.hex()}")
