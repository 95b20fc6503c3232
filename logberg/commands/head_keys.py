"""`logberg quorum keys`, `logberg quorum rotate-key`: the keys with which controllers sign heads.

ADR 0087 has the rules.
"""

import base64
from pathlib import Path

import click

from ledger.errors import LedgerError
from ledger.merkle.notes import NoteKey
from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    cluster_options,
    print_change,
)
from logberg.cli.failure import Failure
from logberg.cli.output import print_json, say, show, table


@click.command("keys")
@cluster_options
def keys(*, cluster: ClusterConnection, output: str) -> None:
    """Show the keys that sign heads, as the log names them, and the newest head in the log.

    Write the lines down: whoever checks a proof needs them. `logberg audit keys` shows from a
    controller's files how each key came to count.
    """
    reply = cluster.ask(lambda client: client.head_keys())
    if output == "json":
        print_json(reply)
        return
    show(
        table(
            ["node", "state", "key"],
            [(each.node_id, each.state, each.public_key) for each in reply.keys],
        )
    )
    if reply.head_size:
        root = base64.b64encode(reply.head_root).decode()
        names = ", ".join(map(str, reply.signed_by))
        say(f"newest head: {reply.head_size} batches, root {root}, signed by {names}")
    else:
        say("the log has no signed head yet")


@click.command("rotate-key")
@click.argument("node", type=click.IntRange(min=0))
@click.option(
    "--public-key",
    "public_key",
    metavar="KEY",
    help="Name this key (NODE's head.pub, as a file or as the line in it) because the one before "
    "is lost. Needs --reason. Without it, NODE draws a key, and both sign the change.",
)
@change_options
def rotate_key(
    *,
    node: int,
    public_key: str | None,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Let controller NODE sign heads with another key from now on.

    It draws the key itself, within a moment; the private key never leaves its folder.
    """
    line = "" if public_key is None else public_key_of(public_key, "--public-key").text
    reply = cluster.ask(lambda client: client.change_head_key(node, line, **change.arguments()))
    if reply.rotates:
        said = f"controller {node} is asked for another key (offset {reply.offset})"
        print_change(reply, output, said, "`logberg quorum keys` shows when it counts")
    else:
        said = f"controller {node} signs heads with {reply.public_key} (offset {reply.offset})"
        print_change(reply, output, said)


def public_key_of(text: str, option: str = "--key") -> NoteKey:
    """Return a public key that is given as a file or as the line. Raises Failure."""
    try:
        line = Path(text).read_text(encoding="utf-8") if "+" not in text else text
        return NoteKey.parse(line)
    except (OSError, UnicodeDecodeError):
        raise Failure(f"{option} {text}: it is neither a file nor a key") from None
    except LedgerError as error:
        raise Failure(f"{option}: {error}") from None
