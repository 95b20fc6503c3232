"""`logberg coordination sessions`."""

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
from metadata.errors import Fault
from metadata.messages.coordination import EntriesReply, ListSessionsReply
from metadata.messages.errors import ErrorReply


@click.group("sessions", cls=SuggestingGroup)
def command() -> None:
    """List and describe sessions; end somebody's session."""


@command.command("list")
@reading_options
def list_sessions(*, cluster: ClusterConnection, output: str) -> None:
    """List the sessions of clients."""
    reply = cluster.ask(lambda client: client.coordination_sessions())
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.sessions:
        say("no sessions")
    else:
        show(
            table(
                ["session", "client", "owner", "ttl", "entries", "opened at revision"],
                [
                    (
                        session.session_id,
                        session.client_name or "-",
                        session.owner,
                        f"{session.ttl_ms} ms",
                        session.entries,
                        session.revision,
                    )
                    for session in reply.sessions
                ],
            )
        )


@command.command("describe")
@click.argument("session")
@reading_options
def describe(*, session: str, cluster: ClusterConnection, output: str) -> None:
    """Describe one session: whose it is, and what it holds and waits for."""

    async def ask(client: LogbergClient) -> tuple[ListSessionsReply, EntriesReply]:
        found = await client.coordination_sessions(session)
        return found, await client.entries_of_session(session)

    sessions, entries = cluster.ask(ask)
    if not sessions.sessions:
        raise _no_session(session)
    found = sessions.sessions[0]
    if output == "json":
        print_json({"session": found, "entries": entries.entries, "offset": entries.offset})
        return
    show(
        facts(
            [
                ("session", found.session_id),
                ("client", found.client_name or "-"),
                ("owner", found.owner),
                ("ttl", f"{found.ttl_ms} ms"),
                ("opened at revision", found.revision),
                ("as of offset", f"{entries.offset} (epoch {entries.epoch})"),
            ]
        )
    )
    if entries.entries:
        show(
            table(
                ["kind", "name", "id", "token"],
                [
                    (entry.kind, entry.name, entry.id, entry.token if entry.granted else "waits")
                    for entry in entries.entries
                ],
            )
        )


@command.command("end")
@click.argument("session")
@change_options
def end(*, session: str, change: ChangeOptions, cluster: ClusterConnection, output: str) -> None:
    """End somebody's session. What it holds goes to whoever is next; its client learns it."""
    reply = cluster.ask(lambda client: client.end_session(session, **change.arguments()))
    done = f"session {session} is ended (offset {reply.offset})"
    print_change(reply, output, done if reply.ended else f"there is no session {session}")


def _no_session(wanted: str) -> Failure:
    message = f"there is no session {wanted}: it has ended, or never was"
    error = ErrorReply("SESSION_LOST", message, whose_fault=Fault.CLIENT.value)
    return Failure(f"{message} [{error.code}]", error)
