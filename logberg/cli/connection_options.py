"""The options with which a command finds its cluster, and the requests that it sends.

Rule: every option of a connection has an environment variable; an option on the command line
beats every variable. A change that may have been made ends with its request id.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import msgspec
from click.core import ParameterSource

from logberg.cli.cluster_lookup import Named, find
from logberg.cli.command_traces import command_tracer
from logberg.cli.default_folder import DEFAULT_FOLDER, or_old_folder
from logberg.cli.failure import Failure
from logberg.cli.option_group import option_group
from logberg.cli.output import note as print_note
from logberg.cli.output import output_option, print_json, say
from logberg.client.access import Access
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError, unknown_outcome
from runtime.sockets.tls import TlsFilesError

T = TypeVar("T")


class ClusterConnection(msgspec.Struct, frozen=True):
    """The controllers' URLs, and the credentials for them."""

    urls: tuple[str, ...]
    access: Access
    deadline_s: float
    note: str = ""
    """Added to an error of a cluster that got no token."""

    def ask(
        self, question: Callable[[LogbergClient], Awaitable[T]], repeats: str | None = None
    ) -> T:
        """Run one conversation with the controllers. Raises Failure.

        `repeats`: the request id that repeats the command, if it makes several changes.
        """
        with command_tracer() as tracer:
            client = LogbergClient(self.urls, self.access, self.deadline_s, tracer=tracer)
            return self._conversation(client, question, repeats)

    def _conversation(
        self,
        client: LogbergClient,
        question: Callable[[LogbergClient], Awaitable[T]],
        repeats: str | None,
    ) -> T:
        async def conversation() -> T:
            async with client:
                return await question(client)

        try:
            return self._asked(lambda: asyncio.run(conversation()))
        except TlsFilesError as error:
            raise self._bad_tls_files(error) from None
        except KeyboardInterrupt:
            if not client.in_doubt:
                raise
            in_doubt = repeats or min(client.in_doubt)
            raise self.failure(unknown_outcome(in_doubt, "interrupted")) from None

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except ClientError as error:
            raise self.failure(error) from None

    def _bad_tls_files(self, error: TlsFilesError) -> Failure:
        return Failure(f"{error}; check --ca, --cert and --key")

    def failure(self, error: ClientError) -> Failure:
        """Return what ends a command with this error."""
        said = f"{error}; {self.note}" if self.note else str(error)
        reply = msgspec.structs.replace(error.reply, message=said)
        return Failure(f"{said} [{error.code}]", reply)


_connection_options = option_group(
    click.option(
        "--controllers",
        envvar="LOGBERG_CONTROLLERS",
        show_envvar=True,
        help="URLs of controllers, separated by commas.",
    ),
    click.option(
        "--data",
        type=click.Path(path_type=Path),
        default=DEFAULT_FOLDER,
        show_default=True,
        callback=or_old_folder,
        envvar="LOGBERG_DATA",
        show_envvar=True,
        help="Use the cluster that `logberg up` runs in this folder.",
    ),
    click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        envvar="LOGBERG_TOKEN_FILE",
        show_envvar=True,
        help="File with a bearer token. It is sent only to servers that prove to be controllers.",
    ),
    click.option(
        "--send-token-in-clear",
        is_flag=True,
        envvar="LOGBERG_SEND_TOKEN_IN_CLEAR",
        show_envvar=True,
        help="Send the token also over http://, unencrypted, to those in --controllers.",
    ),
    click.option(
        "--ca",
        envvar="LOGBERG_CA",
        show_envvar=True,
        help="The CA that signed the controllers' certificates (PEM).",
    ),
    click.option(
        "--cert",
        envvar="LOGBERG_CERT",
        show_envvar=True,
        help="The client's certificate (PEM); needs --key.",
    ),
    click.option(
        "--key", envvar="LOGBERG_KEY", show_envvar=True, help="The private key of --cert (PEM)."
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=10.0,
        show_default=True,
        envvar="LOGBERG_TIMEOUT",
        show_envvar=True,
        help="Seconds after which the command gives up.",
    ),
)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that find a cluster; it gets `cluster` and `output`."""

    @output_option
    @wraps(command)
    def with_cluster(
        *,
        controllers: str | None,
        data: Path,
        token_file: Path | None,
        send_token_in_clear: bool,
        ca: str | None,
        cert: str | None,
        key: str | None,
        timeout: float,
        **others: Any,
    ) -> Any:
        past = _Past(*(others.pop(name, None) for name in ("at", "log", "server_properties")))
        past.check()
        if _said("data") and not _said("controllers"):
            controllers = None
        where = past.folder(controllers, data)
        if others.get("from_folder") is not None:
            # The command reads a controller's folder, and asks nobody.
            return command(cluster=ClusterConnection((), Access(), timeout), **others)
        if where:
            return command(
                cluster=past.state(ClusterConnection((), Access(), timeout), where), **others
            )
        found = find(
            Named(controllers, data, token_file, ca, cert, key, token_in_clear=send_token_in_clear)
        )
        if found.note and others["output"] != "json":
            print_note(found.note)
        note = found.note if others["output"] == "json" else ""
        cluster = ClusterConnection(found.urls, found.access, timeout, note)
        return command(cluster=cluster if past.at is None else past.state(cluster), **others)

    return _connection_options(with_cluster)


class _Past(NamedTuple):
    """What the caller said of a moment, and of the log that knows it."""

    at: str | None
    log: str | None
    server_properties: Path | None

    def check(self) -> None:
        """Raise UsageError for options that need `--at`."""
        if self.at is None and self.log is not None:
            raise click.UsageError("--log is only for --at: without it, the controllers answer")
        if self.at is None and self.server_properties is not None:
            raise click.UsageError(
                "--server-properties is only for --at: without it, the controllers answer"
            )

    def folder(self, controllers: str | None, data: Path) -> str:
        """Return where the log lies; empty: the controllers answer, or send their log.

        Raises Failure if the caller named neither of them, and there is no default folder.
        """
        if self.at is None:
            return ""
        if self.log is not None:
            return self.log
        if controllers is not None:
            return ""
        if not data.exists():
            raise Failure(
                f"{data} is not there, so no log says how the cluster was: name its controllers "
                "with --controllers (LOGBERG_CONTROLLERS), or a log's place with --log"
            )
        return str(data)

    def state(self, cluster: ClusterConnection, where: str = "") -> ClusterConnection:
        """Return the cluster at that moment."""
        # Imported here: other commands pay for no replay.
        from logberg.cli.past_state import PastState  # noqa: PLC0415

        return PastState(
            **msgspec.structs.asdict(cluster),
            where=where,
            at=self.at or "",
            server_properties=self.server_properties,
        )


_past_options = option_group(
    click.option(
        "--at",
        metavar="OFFSET|TIME",
        help="The state at this offset or time (2026-11-20T10:00:00Z, or -2h: that long before the "
        "log's last change), read from the log: of --controllers, else of the folder of --data.",
    ),
    click.option(
        "--log",
        metavar="WHERE",
        help="With --at: read the log there: a node's folder, an archive or a URL.",
    ),
    click.option(
        "--server-properties",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="With --at: the controllers' own settings at that time, which the log doesn't have.",
    ),
)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that reads the state the options that find a cluster, and `--at`."""
    return cluster_options(_past_options(command))


class ChangeOptions(msgspec.Struct, frozen=True):
    """The options that every changing command has in common."""

    dry_run: bool
    reason: str
    request_id: str | None
    expect_offset: int | None = None

    def arguments(self) -> dict[str, Any]:
        """Return them as arguments of the client's methods."""
        return msgspec.structs.asdict(self)


def print_change(reply: Any, output: str, *said: str) -> None:
    """Print the answer to a change: as JSON, the records of a dry run, or what is `said` of it."""
    if output == "json":
        print_json(reply)
    elif reply.dry_run:
        print_json(reply.records)
    else:
        for line in said:
            say(line)


def change_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that changes something its options; it gets `change`."""

    @click.option(
        "--dry-run", is_flag=True, help="Show the records that would be written; write none."
    )
    @click.option("--reason", default="", help="Why you make this change. The log keeps the text.")
    @click.option(
        "--request-id",
        help="Repeat the change with this request id, whose outcome is unknown. It is made once.",
    )
    @click.option(
        "--expect-offset",
        type=click.IntRange(min=0),
        metavar="OFFSET",
        help="Refuse the change if what it touches has changed since you read it at this offset.",
    )
    @cluster_options
    @wraps(command)
    def with_change(
        *,
        dry_run: bool,
        reason: str,
        request_id: str | None,
        expect_offset: int | None,
        **others: Any,
    ) -> Any:
        change = ChangeOptions(dry_run, reason, request_id, expect_offset)
        return command(change=change, **others)

    return with_change


def _said(name: str) -> bool:
    """Whether an option stands on the command line itself."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE
