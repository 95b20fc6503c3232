"""`logberg explain` of what services coordinate by: who holds it, who waits, who made it so."""

from collections.abc import Mapping
from typing import Final

import click

from logberg.cli.connection_options import ClusterConnection, reading_options
from logberg.client.client import LogbergClient
from logberg.commands.last_changes import ThingChanges, depth_option, last_changes, show_findings
from metadata.messages.coordination import EntryDescription, ResourceKind, SessionDescription
from metadata.messages.findings import Explanation
from metadata.messages.log import RecordInWords

_ENTRIES = ("ENTRY_RECORD", "REMOVE_ENTRY_RECORD")
_SESSIONS = ("SESSION_RECORD", "END_SESSION_RECORD")
_KEYS = ("KEY_RECORD", "REMOVE_KEY_RECORD")
_NAMED = 5
"""So many holders and waiters are named; the others are counted."""

_Answer = tuple[tuple[Explanation, ...], ThingChanges]
_Found = tuple[tuple[Explanation, ...], int]
"""What the state says, and the offset of the state."""
GRANTED: Final[Mapping[str, str]] = {
    "lock": "holds it",
    "election": "leads",
    "group": "is a member",
}
"""By kind: what an entry does that was granted."""


async def explain_queue(client: LogbergClient, kind: ResourceKind, name: str) -> _Found:
    """Say who holds a lock, leads an election or is in a group, and who waits."""
    reply = await client.entries_of(kind, name)
    about = f"{kind}:{name}"
    present = [each for each in reply.entries if each.granted]
    waiting = [each.id for each in reply.entries if not each.granted]
    found = [
        Explanation(about, f"{each.id} {GRANTED[kind]}: {await _whose(client, each)}")
        for each in present[:_NAMED]
    ]
    if len(present) > _NAMED:
        found.append(Explanation(about, f"and {len(present) - _NAMED} more"))
    if waiting:
        found.append(Explanation(about, f"{len(waiting)} wait: {', '.join(waiting[:_NAMED])}"))
    return tuple(found), reply.offset


async def explain_session(client: LogbergClient, session: str) -> _Found:
    """Say whose session it is, what it holds and what it waits for."""
    reply = await client.coordination_sessions(session)
    found = []
    if reply.sessions:
        found.append(Explanation(f"session:{session}", _words(reply.sessions[0])))
        found += [
            Explanation(
                f"{each.kind}:{each.name}",
                f"{each.kind} {each.name}: {each.id} "
                + (f"has token {each.token}" if each.granted else "waits"),
            )
            for each in (await client.entries_of_session(session)).entries
        ]
    return tuple(found), reply.offset


async def explain_key(client: LogbergClient, key: str) -> _Found:
    """Say how often a key was set."""
    reply = await client.coordination_key(key)
    found = []
    if reply.record is not None:
        record = reply.record
        says = (
            f"it was set {record.version} times since revision {record.create_revision}, last "
            f"at {record.mod_revision}"
        )
        found.append(Explanation(f"key:{key}", says))
    return tuple(found), reply.offset


def _queue_command(kind: ResourceKind, sound: str, help_: str) -> click.Command:
    @click.command(kind, help=help_)
    @click.argument("name")
    @depth_option
    @reading_options
    def command(*, name: str, depth: int, cluster: ClusterConnection, output: str) -> None:
        def concerns(record: RecordInWords) -> bool:
            data = record.data
            same = data.get("name") == name and str(data.get("kind")).lower() == kind
            return same and record.type in _ENTRIES

        async def ask(client: LogbergClient) -> _Answer:
            found, offset = await explain_queue(client, kind, name)
            return found, await last_changes(client, offset, depth, concerns)

        findings, causes = cluster.ask(ask)
        show_findings(f"{kind} {name}", sound, findings, causes, output)

    return command


@click.command("session")
@click.argument("session")
@depth_option
@reading_options
def _session(*, session: str, depth: int, cluster: ClusterConnection, output: str) -> None:
    """Explain a session: whether it is open, what it holds and waits for, or what ended it."""

    def concerns(record: RecordInWords) -> bool:
        same = record.data.get("sessionId") == session
        return same and record.type in (*_SESSIONS, *_ENTRIES)

    async def ask(client: LogbergClient) -> _Answer:
        found, offset = await explain_session(client, session)
        return found, await last_changes(client, offset, depth, concerns)

    findings, causes = cluster.ask(ask)
    show_findings(f"session {session}", "it is not open", findings, causes, output)


@click.command("key")
@click.argument("key_", metavar="KEY")
@depth_option
@reading_options
def _key(*, key_: str, depth: int, cluster: ClusterConnection, output: str) -> None:
    """Explain a key: who set it last, or who deleted it."""

    def concerns(record: RecordInWords) -> bool:
        return record.data.get("key") == key_ and record.type in _KEYS

    async def ask(client: LogbergClient) -> _Answer:
        found, offset = await explain_key(client, key_)
        return found, await last_changes(client, offset, depth, concerns)

    findings, causes = cluster.ask(ask)
    show_findings(f"key {key_}", "it is not there", findings, causes, output)


async def _whose(client: LogbergClient, entry: EntryDescription) -> str:
    """Say whose an entry is, with its token."""
    sessions = (await client.coordination_sessions(entry.session_id)).sessions
    said = _words(sessions[0]) if sessions else f"session {entry.session_id}"
    return f"token {entry.token}, {said}"


def _words(session: SessionDescription) -> str:
    client = f" ({session.client_name})" if session.client_name else ""
    return (
        f"session {session.session_id} of {session.owner}{client}, open since revision "
        f"{session.revision}, ttl {session.ttl_ms} ms"
    )


COORDINATION: tuple[click.Command, ...] = (
    _queue_command("lock", "nobody holds it", "Explain who holds a lock."),
    _queue_command("election", "nobody leads", "Explain who leads an election."),
    _queue_command("group", "it has no members", "Explain who is in a group."),
    _session,
    _key,
)
