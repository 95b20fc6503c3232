"""`logberg delegation-tokens`."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.failure import Failure
from logberg.cli.output import facts, print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.client import LogbergClient
from logberg.client.paged_lists import without_pages
from metadata.messages.tokens import ChangeTokenReply


@click.group("delegation-tokens", cls=SuggestingGroup)
def command() -> None:
    """Create, renew, expire and list delegation tokens."""


@command.command("create")
@click.option("--owner", help="The token's owner, such as User:alice. [default: the caller]")
@click.option(
    "--renewer",
    "renewers",
    multiple=True,
    help="A principal that may renew the token, besides its owner. Repeatable.",
)
@click.option(
    "--max-lifetime-ms",
    type=int,
    default=-1,
    help="The longest that the token can live; -1: the controllers' limit.",
)
@change_options
def create(
    *,
    owner: str | None,
    renewers: tuple[str, ...],
    max_lifetime_ms: int,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Create a token. Its HMAC is shown now, and never again."""
    reply = cluster.ask(
        lambda client: client.create_token(
            owner=owner,
            renewers=renewers,
            max_lifetime_ms=max_lifetime_ms,
            **change.arguments(),
        )
    )
    print_change(reply, output)
    if output != "json" and not reply.dry_run:
        token = reply.token
        show(
            facts(
                [
                    ("token", token.token_id),
                    ("hmac", b64encode(reply.hmac).decode()),
                    ("owner", token.owner),
                    ("renewers", ", ".join(token.renewers) or "-"),
                    ("expires", _time(token.expiry_timestamp_ms)),
                    ("at the latest", _time(token.max_timestamp_ms)),
                ]
            )
        )


def _expiry_command(
    name: str,
    change_expiry: Callable[..., Awaitable[ChangeTokenReply]],
    meaning: str,
    period: str,
) -> None:
    """Add a command that changes when a token expires."""

    @command.command(name, help=f"{meaning} Its owner and its renewers may do that.")
    @click.argument("token_id")
    @click.option(
        "--hmac-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
        required=True,
        help="File whose first line is the token's HMAC in base64; - is stdin.",
    )
    @click.option("--period-ms", type=int, default=-1, help=period)
    @change_options
    def move(
        *,
        token_id: str,
        hmac_file: Path,
        period_ms: int,
        change: ChangeOptions,
        cluster: ClusterConnection,
        output: str,
    ) -> None:
        hmac = _read(hmac_file)
        reply = cluster.ask(
            lambda client: change_expiry(
                client, token_id, hmac, period_ms=period_ms, **change.arguments()
            )
        )
        until = _time(reply.expiry_timestamp_ms)
        print_change(reply, output, f"{reply.token_id} lives until {until} (offset {reply.offset})")


_expiry_command(
    "renew",
    LogbergClient.renew_token,
    "Let a token live longer.",
    "Time from now until the token expires; -1: the controllers' own.",
)
_expiry_command(
    "expire",
    LogbergClient.expire_token,
    "Let a token end earlier, or at once.",
    "Time from now until the token expires; -1: at once.",
)


@command.command("list")
@click.option("--owner", help="Only tokens of this principal, such as User:alice.")
@reading_options
def list_tokens(*, owner: str | None, cluster: ClusterConnection, output: str) -> None:
    """List tokens; no HMAC is shown."""
    reply = cluster.ask(lambda client: client.tokens(owner))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.tokens:
        say("no delegation tokens")
    else:
        show(
            table(
                ["token", "owner", "requester", "renewers", "expires", "at the latest"],
                [
                    (
                        token.token_id,
                        token.owner,
                        token.requester,
                        ", ".join(token.renewers) or "-",
                        _time(token.expiry_timestamp_ms),
                        _time(token.max_timestamp_ms),
                    )
                    for token in reply.tokens
                ],
            )
        )


def _read(path: Path) -> bytes:
    with click.open_file(str(path)) as file:
        text = file.readline().strip()
    try:
        return b64decode(text, validate=True)
    except Base64Error:
        raise Failure(f"{path}: its first line is not base64") from None


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
