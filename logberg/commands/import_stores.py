"""`logberg import etcd`, `consul`, `cassandra`: a store's keys become keys of coordination."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import click

from logberg.cli.connection_options import ChangeOptions, ClusterConnection, change_options
from logberg.cli.failure import Failure
from logberg.cli.option_group import option_group
from logberg.commands.import_steps import carry_out
from logberg.importing.consul_source import ConsulSource
from logberg.importing.etcd_source import EtcdSource
from logberg.importing.found_keys import StoreReading, plan_of_keys
from logberg.importing.source_error import SourceError
from logberg.importing.store_url import KeyLayout

SOURCE: Final = click.argument("source", envvar="LOGBERG_IMPORT_SOURCE")
SKIP_MALFORMED: Final = click.option(
    "--skip-malformed", is_flag=True, help="Import the rest if some keys can't be taken."
)
KEY_OPTIONS: Final = option_group(
    click.option(
        "--prefix", default="", help="Take only the keys that begin with this text, and cut it off."
    ),
    click.option("--into", default="", help="The namespace of the keys here; empty: none."),
)
_STORE_OPTIONS: Final = option_group(
    SOURCE,
    KEY_OPTIONS,
    click.option(
        "--source-ca",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The CA that signed the source's certificates (PEM).",
    ),
    SKIP_MALFORMED,
)
_LAYOUT: Final = click.option(
    "--layout",
    type=click.Choice([each.value for each in KeyLayout]),
    default=KeyLayout.PLAIN.value,
    show_default=True,
    help="Who wrote the keys: any program, or this library's coordination client.",
)


class _Source(Protocol):
    """A store that can be read."""

    name: str

    async def read(self) -> StoreReading: ...


@click.command("etcd")
@_STORE_OPTIONS
@_LAYOUT
@change_options
def etcd(
    *,
    source: str,
    prefix: str,
    into: str,
    layout: str,
    source_ca: Path | None,
    skip_malformed: bool,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Import keys from etcd.

    The source is etcd+http://[user:password@]host:port,… or etcd+https://…

    All keys of one revision become keys of coordination, as one change, or nothing does if a key is
    here already with another value. Keys with a lease stay behind: they end with their session.
    Nothing is written to etcd. A second import writes nothing.
    """

    def make() -> _Source:
        return EtcdSource(source, KeyLayout(layout), prefix, cluster.deadline_s, _text(source_ca))

    reading, name = _read(make)
    import_keys(reading, name, prefix, into, change, cluster, output, skip_malformed=skip_malformed)


@click.command("consul")
@_STORE_OPTIONS
@_LAYOUT
@change_options
def consul(
    *,
    source: str,
    prefix: str,
    into: str,
    layout: str,
    source_ca: Path | None,
    skip_malformed: bool,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Import keys from Consul.

    The source is consul+http://[:token@]host:port,… or consul+https://…

    All keys of one index become keys of coordination, as one change, or nothing does if a key is
    here already with another value. Keys that a session has locked stay behind. Nothing is written
    to Consul. A second import writes nothing.
    """

    def make() -> _Source:
        return ConsulSource(source, KeyLayout(layout), prefix, cluster.deadline_s, _text(source_ca))

    reading, name = _read(make)
    import_keys(reading, name, prefix, into, change, cluster, output, skip_malformed=skip_malformed)


@click.command("cassandra")
@_STORE_OPTIONS
@change_options
def cassandra(
    *,
    source: str,
    prefix: str,
    into: str,
    source_ca: Path | None,
    skip_malformed: bool,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Import keys from Cassandra.

    The source is cassandra://[user:password@]host:port,…/keyspace

    It reads the tables of this library's coordination client. All keys become keys of coordination
    here, as one change, or nothing does if a key is here already with another value. Nothing is
    written to Cassandra. A second import writes nothing.
    """

    def make() -> _Source:
        try:
            from logberg.importing.cassandra_source import (  # noqa: PLC0415 - its driver is an extra
                CassandraSource,
            )
        except ImportError:
            raise SourceError("install logberg[cassandra] for an import from Cassandra") from None
        return CassandraSource(source, cluster.deadline_s, _text(source_ca))

    reading, name = _read(make)
    import_keys(reading, name, prefix, into, change, cluster, output, skip_malformed=skip_malformed)


def import_keys(
    reading: StoreReading,
    name: str,
    prefix: str,
    into: str,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
    *,
    skip_malformed: bool,
) -> None:
    """Import what was read of a store of this name. Raises Failure."""
    plan = plan_of_keys(reading.keys, prefix, into)
    manifest = plan.manifest(
        name, reading.revision, len(reading.keys), reading.consistency, reading.newest_token
    )
    carry_out(plan, manifest, change, cluster, output, skip_malformed=skip_malformed)


def _read(make: Callable[[], _Source]) -> tuple[StoreReading, str]:
    """Read a store. Raises Failure."""
    try:
        source = make()
        return asyncio.run(source.read()), source.name
    except SourceError as error:
        raise Failure(str(error)) from None


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
