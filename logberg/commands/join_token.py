"""`logberg join-token`."""

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
from logberg.client.drawn_tokens import (
    JoinToken,
    hash_of,
    kept_join_secret,
    replace_secret,
)
from logberg.client.paged_lists import without_pages
from metadata.credentials import time_text
from metadata.messages.credentials import AuthorityReply, JoinTokenDescription
from runtime.disk.secret_file import SecretFileError


@click.group("join-token", cls=SuggestingGroup)
def command() -> None:
    """Make, list and revoke tokens with which a broker or a controller gets its certificate."""


@command.command("create")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--role", type=click.Choice(["broker", "controller"]), required=True)
@click.option("--id", "node_id", type=click.IntRange(0, 2**31 - 1), required=True)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    help="A name or address at which others reach the node. Repeatable. [default: this machine's]",
)
@click.option("--ttl", type=Duration(), default=-1, help="How long it counts. [default: 10m]")
@change_options
def create(
    *,
    file: Path,
    role: str,
    node_id: int,
    hosts: tuple[str, ...],
    ttl: int,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Make a token that works once, for this node, and write it into FILE (mode 0600).

    Copy FILE to the node and run there: logberg join FILE. The controllers get the token's SHA-256
    only. FILE also holds the fingerprint of the cluster's authority, so the node knows whom to
    trust.
    """
    try:
        secret, drawn = kept_join_secret(file)
    except (SecretFileError, AccessError) as error:
        raise Failure(str(error)) from None
    no_first_file(file, drawn=drawn, request_id=change.request_id)
    reply = cluster.ask(
        lambda client: client.create_join_token(
            role,
            node_id,
            hash_of(secret),
            hosts=hosts,
            lifetime_ms=ttl,
            **change.arguments(),
        )
    )
    if not reply.dry_run:
        authority = cluster.ask(lambda client: client.get("/v1/authority", AuthorityReply))
        replace_secret(file, _checked(JoinToken(secret, authority.sha256)).text)
    until = time_text(reply.token.expires_ms)
    print_change(
        reply,
        output,
        f"made join token {reply.token.token_id} for {role} {node_id}, until {until} "
        f"(offset {reply.offset})",
        f"wrote {file}; on the node: logberg join {file.name} --controllers URL --folder FOLDER",
    )


def _checked(token: JoinToken) -> JoinToken:
    try:
        return JoinToken.parse(token.text)
    except ValueError:
        raise Failure(
            "the controllers answered with a fingerprint that is none: ask again with --request-id"
        ) from None


@command.command("revoke")
@click.argument("token_id")
@change_options
def revoke(
    *, token_id: str, change: ChangeOptions, cluster: ClusterConnection, output: str
) -> None:
    """End a token at once. A certificate that it gave stays: logberg certs revoke."""
    reply = cluster.ask(lambda client: client.revoke_join_token(token_id, **change.arguments()))
    print_change(reply, output, f"join token {token_id} is revoked (offset {reply.offset})")


@command.command("list")
@reading_options
def list_tokens(*, cluster: ClusterConnection, output: str) -> None:
    """List join tokens by id."""
    reply = cluster.ask(lambda client: client.join_tokens())
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.tokens:
        say("no join tokens")
    else:
        show(
            table(
                ["token", "for", "hosts", "made by", "expires", "state"],
                [
                    (
                        token.token_id,
                        f"{token.role} {token.node_id}",
                        ", ".join(token.hosts),
                        token.made_by,
                        time_text(token.expires_ms),
                        _state(token),
                    )
                    for token in reply.tokens
                ],
            )
        )


def _state(token: JoinTokenDescription) -> str:
    if token.revoked_ms >= 0:
        return f"revoked at {time_text(token.revoked_ms)}"
    return "not used" if token.used_ms < 0 else f"used at {time_text(token.used_ms)}"
