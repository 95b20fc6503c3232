"""`logberg tokens`."""

from pathlib import Path

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.durations import Duration
from logberg.cli.failure import Failure
from logberg.cli.output import print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.cli.token_files import no_first_file
from logberg.client.access import AccessError
from logberg.client.drawn_tokens import hash_of, kept_token
from logberg.client.paged_lists import without_pages
from metadata.credentials import time_text
from metadata.messages.credentials import AccessTokenDescription
from runtime.disk.secret_file import SecretFileError

_LIFETIME = "How long it counts, such as 12h or 30d. [default: {}]"
_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.group("tokens", cls=SuggestingGroup)
def command() -> None:
    """Make, list, rotate and revoke access tokens of people and services.

    Delegation tokens of Kafka's clients: logberg delegation-tokens.
    """


@command.command("create")
@click.argument("principal")
@_FILE
@click.option("--name", default="", help="What the token is for. The log keeps the text.")
@click.option("--ttl", type=Duration(), default=-1, help=_LIFETIME.format("90d"))
@change_options
def create(
    *,
    principal: str,
    file: Path,
    name: str,
    ttl: int,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Make a token for PRINCIPAL, such as User:alice, and write it into FILE (mode 0600).

    The controllers get its SHA-256 only. If FILE is there already, the token in it is used: one of
    the controllers' settings moves into the log so.
    """
    token, drawn = _token(file, change)
    reply = cluster.ask(
        lambda client: client.create_access_token(
            principal, hash_of(token), name=name, lifetime_ms=ttl, **change.arguments()
        )
    )
    said = f"made access token {reply.token.token_id} of {reply.token.principal}"
    print_change(reply, output, f"{said} (offset {reply.offset})", _until(reply.token, file, drawn))


@command.command("rotate")
@click.argument("token_id")
@_FILE
@click.option(
    "--overlap", type=Duration(), default=0, help="How long the old token still counts, such as 1h."
)
@click.option("--ttl", type=Duration(), default=-1, help=_LIFETIME.format("as the old one"))
@change_options
def rotate(
    *,
    token_id: str,
    file: Path,
    overlap: int,
    ttl: int,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Make a token in place of TOKEN_ID, and write it into FILE (mode 0600)."""
    token, drawn = _token(file, change)
    reply = cluster.ask(
        lambda client: client.rotate_access_token(
            token_id, hash_of(token), lifetime_ms=ttl, overlap_ms=overlap, **change.arguments()
        )
    )
    said = f"access token {reply.token.token_id} replaces {token_id}"
    print_change(reply, output, f"{said} (offset {reply.offset})", _until(reply.token, file, drawn))


@command.command("revoke")
@click.argument("token_id")
@change_options
def revoke(
    *, token_id: str, change: ChangeOptions, cluster: ClusterConnection, output: str
) -> None:
    """End a token at once. Connections that it opened end within 5 seconds."""
    reply = cluster.ask(lambda client: client.revoke_access_token(token_id, **change.arguments()))
    print_change(reply, output, f"access token {token_id} is revoked (offset {reply.offset})")


@command.command("list")
@click.option("--principal", help="Only tokens of this principal, such as User:alice.")
@reading_options
def list_tokens(*, principal: str | None, cluster: ClusterConnection, output: str) -> None:
    """List tokens by id. A token itself is known to nobody but its owner."""
    reply = cluster.ask(lambda client: client.access_tokens(principal))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.tokens:
        say("no access tokens")
    else:
        show(
            table(
                ["token", "principal", "name", "made by", "expires", "revoked", "replaces"],
                [
                    (
                        token.token_id,
                        token.principal,
                        token.name or "-",
                        token.made_by,
                        time_text(token.expires_ms),
                        "-" if token.revoked_ms < 0 else time_text(token.revoked_ms),
                        token.replaces or "-",
                    )
                    for token in reply.tokens
                ],
            )
        )


def _token(file: Path, change: ChangeOptions) -> tuple[str, bool]:
    try:
        token, drawn = kept_token(file)
    except (SecretFileError, AccessError) as error:
        raise Failure(str(error)) from None
    no_first_file(file, drawn=drawn, request_id=change.request_id)
    return token, drawn


def _until(token: AccessTokenDescription, file: Path, drawn: bool) -> str:
    done = "wrote" if drawn else "took the token in"
    return f"{done} {file}; it expires at {time_text(token.expires_ms)}"
