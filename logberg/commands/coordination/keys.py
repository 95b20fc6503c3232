"""`logberg coordination keys`."""

from contextlib import suppress
from pathlib import Path
from typing import Literal

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    cluster_options,
    print_change,
    reading_options,
)
from logberg.cli.failure import Failure
from logberg.cli.output import (
    facts,
    note,
    print_bytes,
    print_json,
    print_line,
    say,
    show,
    table,
)
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.client import LogbergClient
from logberg.client.paged_lists import without_pages
from logberg.commands.coordination.entry_tables import text_of
from metadata.errors import Fault
from metadata.messages.coordination import KeyOperation
from metadata.messages.errors import ErrorReply

_expect_option = click.option(
    "--expect",
    type=click.IntRange(min=0),
    metavar="REVISION",
    help="Only if the key's last change has this revision, which `get` shows.",
)


@click.group("keys", cls=SuggestingGroup)
def command() -> None:
    """Get, put, delete, list and watch keys."""


@command.command("get")
@click.argument("key_", metavar="KEY")
@click.option("--raw", is_flag=True, help="Write the bytes of the value, and nothing else.")
@reading_options
def get(*, key_: str, raw: bool, cluster: ClusterConnection, output: str) -> None:
    """Show one key: its value, and the revisions of its creation and of its last change."""
    if raw and output == "json":
        raise click.UsageError("--raw writes no JSON; leave one of them out")
    reply = cluster.ask(lambda client: client.coordination_key(key_))
    record = reply.record
    if record is None:
        message = f"there is no key {key_!r}"
        error = ErrorReply("KEY_MISSING", message, whose_fault=Fault.CLIENT.value)
        raise Failure(f"{message} [{error.code}]", error)
    if raw:
        print_bytes(record.value)
    elif output == "json":
        print_json(reply)
    else:
        show(
            facts(
                [
                    ("key", record.key),
                    ("value", text_of(record.value)),
                    ("revision", record.mod_revision),
                    ("created at revision", record.create_revision),
                    ("version", record.version),
                ]
            )
        )


@command.command("list")
@click.argument("prefix", default="")
@click.option("--values", is_flag=True, help="Show the values too.")
@reading_options
def list_keys(*, prefix: str, values: bool, cluster: ClusterConnection, output: str) -> None:
    """List the keys that begin with PREFIX; without one, all keys."""
    reply = cluster.ask(lambda client: client.coordination_keys(prefix, keys_only=not values))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.records:
        say(f"no key begins with {prefix}" if prefix else "no keys")
    else:
        headings = ["key", "revision", "version"] + ["value"] * values
        rows = [
            (record.key, record.mod_revision, record.version)
            + ((text_of(record.value),) if values else ())
            for record in reply.records
        ]
        show(table(headings, rows))


@command.command("put")
@click.argument("key_", metavar="KEY")
@click.argument("value", required=False)
@click.option(
    "--file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="The value is the content of this file; - is stdin.",
)
@click.option("--create", is_flag=True, help="Only if the key isn't there.")
@click.option("--update", is_flag=True, help="Only if the key is there.")
@_expect_option
@change_options
def put(
    *,
    key_: str,
    value: str | None,
    file: Path | None,
    create: bool,
    update: bool,
    expect: int | None,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Set a key to VALUE, whether it is there or not."""
    if create and (update or expect is not None):
        raise click.UsageError("--create says that there is no key yet; leave the other ones out")
    kind: Literal["put", "update", "upsert"] = "put" if create else "update" if update else "upsert"
    operation = KeyOperation(kind, key_, _data(value, file), expect)
    reply = cluster.ask(lambda client: client.commit_keys(operation, **change.arguments()))
    print_change(reply, output, f"{key_}: set (revision {reply.revision})")


@command.command("delete")
@click.argument("key_", metavar="KEY")
@_expect_option
@change_options
def delete(
    *,
    key_: str,
    expect: int | None,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Delete one key."""
    operation = KeyOperation("delete", key_, expect=expect)
    reply = cluster.ask(lambda client: client.commit_keys(operation, **change.arguments()))
    gone = f"{key_}: deleted (revision {reply.revision})"
    print_change(reply, output, gone if any(reply.applied) else f"{key_}: was not there")


@command.command("watch")
@click.argument("key_", metavar="KEY")
@click.option("--prefix", is_flag=True, help="Watch all keys that begin with KEY.")
@click.option(
    "--after",
    type=click.IntRange(min=-1),
    metavar="REVISION",
    help="Begin behind this revision. Default: show what is there first.",
)
@click.option("--once", is_flag=True, help="Show what there is, and don't wait for more.")
@cluster_options
def watch(
    *,
    key_: str,
    prefix: bool,
    after: int | None,
    once: bool,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Show the changes of a key as they happen, until Ctrl-C.

    With --output json each line is a piece of news; a watch --after its `revision` goes on behind
    it.
    """

    async def follow(client: LogbergClient) -> None:
        async for news in client.watch_keys(key_, is_prefix=prefix, after=after, once=once):
            if output == "json":
                print_line(news)
                continue
            if news.kind == "resync":
                note("the log no longer has all changes; this is the present state")
            for record in news.records:
                say(f"{record.mod_revision}  {record.key}  {text_of(record.value)}")
            for change in news.changes:
                set_to = "(deleted)" if change.record is None else text_of(change.record.value)
                say(f"{change.revision}  {change.key}  {set_to}")

    with suppress(KeyboardInterrupt):
        cluster.ask(follow)


def _data(value: str | None, file: Path | None) -> bytes:
    if (value is None) == (file is None):
        raise click.UsageError("give the value, or --file with a file that has it")
    if file is None:
        return (value or "").encode(errors="surrogateescape")
    with click.open_file(str(file), "rb") as opened:
        data: bytes = opened.read()
    return data
