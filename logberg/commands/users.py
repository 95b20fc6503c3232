"""`logberg users`."""

from pathlib import Path

import click
import msgspec

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.failure import Failure, fail_for
from logberg.cli.output import print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from logberg.client.request_ids import new_request_id
from logberg.client.salting import HASHES, salt_for, salted_password
from metadata.messages.scram import AlterScramReply, ScramDeletion, ScramUpsertion, UserDescription

_mechanism = click.option(
    "--mechanism",
    type=click.Choice(list(HASHES)),
    default="SCRAM-SHA-512",
    show_default=True,
    help="Which credential of the user.",
)


@click.group("users", cls=SuggestingGroup)
def command() -> None:
    """Set, delete and list the credentials of users."""


@command.group("scram", cls=SuggestingGroup)
def scram() -> None:
    """Set, delete and list SCRAM credentials. Clients log in at brokers with them (KIP-554)."""


@scram.command("set")
@click.argument("name")
@_mechanism
@click.option(
    "--iterations",
    type=int,
    default=8192,
    show_default=True,
    help="4096 to 16384: how much work one guess of the password costs.",
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="File whose first line is the password; - is stdin. Without it, the command asks.",
)
@change_options
def set_credential(
    *,
    name: str,
    mechanism: str,
    iterations: int,
    password_file: Path | None,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Set a user's credential. The command sends only a salted hash of the password."""
    if not 1 <= iterations <= 1_000_000:
        raise click.BadParameter("--iterations: give 4096 to 16384")
    password = _password(password_file)
    if not password:
        raise Failure("the password is empty")
    request_id = change.request_id or new_request_id()
    salt = salt_for(request_id, name)
    salted = salted_password(mechanism, password, salt, iterations)
    wanted = ScramUpsertion(name, mechanism, iterations, salt, salted)
    same = msgspec.structs.replace(change, request_id=request_id)
    reply = cluster.ask(lambda client: client.alter_scram((wanted,), **same.arguments()))
    _show(reply, f"set {mechanism} of {name}", output)


@scram.command("delete")
@click.argument("name")
@_mechanism
@change_options
def delete(
    *, name: str, mechanism: str, change: ChangeOptions, cluster: ClusterConnection, output: str
) -> None:
    """Delete a user's credential."""
    reply = cluster.ask(
        lambda client: client.alter_scram(
            (), (ScramDeletion(name, mechanism),), **change.arguments()
        )
    )
    _show(reply, f"deleted {mechanism} of {name}", output)


@scram.command("list")
@click.argument("name", required=False)
@reading_options
def list_users(*, name: str | None, cluster: ClusterConnection, output: str) -> None:
    """List users and their credentials; no secret is shown."""
    if name is not None:
        one = cluster.ask(lambda client: client.user(name))
        users: tuple[UserDescription, ...] = (one.user,)
        if output == "json":
            print_json(one)
            return
    else:
        reply = cluster.ask(lambda client: client.users())
        users = reply.users
        if output == "json":
            print_json(without_pages(reply))
            return
    if not users:
        say("no user has SCRAM credentials")
        return
    show(
        table(
            ["user", "mechanism", "iterations"],
            [
                (user.name, each.mechanism, each.iterations)
                for user in users
                for each in user.credentials
            ],
        )
    )


def _password(path: Path | None) -> str:
    if path is None:
        return str(click.prompt("password", hide_input=True, confirmation_prompt=True, err=True))
    with click.open_file(str(path)) as file:
        return str(file.readline()).rstrip("\r\n")


def _show(reply: AlterScramReply, done: str, output: str) -> None:
    fine = all(user.error is None for user in reply.users)
    print_change(reply, output, *([f"{done} (offset {reply.offset})"] if fine else []))
    fail_for((user.name, user.error) for user in reply.users)
