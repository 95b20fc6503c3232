"""`logberg erase`: destroy the key of a user's secrets on every controller, for good (ADR 0093).

Rule: the command shows first what it destroys and what it can't reach, and asks. It ends when every
controller that answers has destroyed the key, and names those that have not.
"""

import asyncio
import sys
from collections.abc import Iterator
from typing import Final

import click
import msgspec

from audit.questions.erasures import SubjectValues, values_of
from ledger.batch import Batch
from ledger.errors import LedgerError
from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
)
from logberg.cli.failure import Failure
from logberg.cli.output import say
from logberg.cli.progress import progress
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.remote_log import RemoteLog, find_sources
from logberg.client.request_ids import new_request_id
from metadata.messages import EraseReply, ErasuresReply, QuorumReply

_PATH: Final = "/v1/erasures"
_LOOK_S: Final = 0.2
_ONE_S: Final = 2.0


@click.command("erase")
@click.argument("subject")
@click.option("--yes", is_flag=True, help="Erase without asking.")
@change_options
def command(
    *, subject: str, yes: bool, change: ChangeOptions, cluster: ClusterConnection, output: str
) -> None:
    """Make the secrets of SUBJECT unreadable, in the log and in all that is made of it.

    SUBJECT is user:NAME. Every controller destroys the key under which the user's SCRAM keys are
    sealed. The user's credentials and delegation tokens are removed, and its access tokens are
    revoked. The log stays as it is: no byte changes, and every proof still holds. This can't be
    undone.

    The command first says what stays out of reach: values from before logberg.version 6, what
    backups and exports that were made before hold, and what Kafka's brokers keep on their disks.
    The user's name stays in the log.
    """
    same = msgspec.structs.replace(change, request_id=change.request_id or new_request_id())
    plan = cluster.ask(lambda client: client.erase(subject, dry_run=True))
    if output != "json":
        for line in _planned(plan, _values(cluster, subject)):
            say(line)
    if change.dry_run:
        print_change(plan, output)
        return
    if not change.reason:
        raise Failure("say why with --reason: the log keeps it, and nothing else says it later")
    if not yes and (output == "json" or not sys.stdin.isatty()):
        raise Failure("nobody can be asked here: look with --dry-run, then give --yes")
    if not yes and not click.confirm(f"erase {subject}?", err=True):
        raise Failure("nothing is erased")
    done = cluster.ask(lambda client: client.erase(subject, **same.arguments()))
    print_change(
        done,
        output,
        f"erased {subject} (offset {done.offset})",
        "Backups, exports and tables that were made before this offset may still hold its sealed "
        "values, and copies of the controllers' folders its key: delete them.",
    )
    try:
        waiting = _wait_for_all(cluster, done)
    except KeyboardInterrupt:
        raise _unsure("interrupted", same.request_id) from None
    except Failure as failure:
        raise _unsure(failure.message, same.request_id) from None
    if waiting:
        raise Failure(
            "these controllers have not destroyed the key yet, and do it before they use any key "
            f"again: {'; '.join(waiting)}. Ask again with --request-id {same.request_id}"
        )


def _unsure(why: str, request_id: str | None) -> Failure:
    """Return the failure of a wait that ended before every controller was asked."""
    return Failure(
        f"the erasure is in the log, but whether every controller has destroyed the key is not "
        f"known ({why}). Ask again with --request-id {request_id}"
    )


def _planned(plan: EraseReply, values: SubjectValues | None) -> list[str]:
    """Return what is erased, and what can't be reached, as lines."""
    first = (
        f"{plan.subject}: {plan.credentials} credentials and {plan.tokens} delegation tokens are "
        f"removed, {plan.access_tokens} access tokens are revoked, and the key of its secrets is "
        "destroyed on every controller."
    )
    lines = [first]
    if values is None:
        lines.append("The log could not be read, so nobody counted what it has of the subject.")
    else:
        kept = values.cluster_key + values.in_clear
        if values.own_key or kept:
            lines.append(f"The log has {values.own_key} sealed values that become unreadable.")
        else:
            lines.append(f"The log has no secret of {plan.subject}: check the name.")
        if kept:
            lines.append(
                f"Out of reach: {kept} values in {values.batches_out_of_reach} batches before "
                f"offset {values.last_out_of_reach}, from before subjects had keys "
                f"({values.cluster_key} sealed under the cluster key, {values.in_clear} in clear). "
                "Let the user choose another password."
            )
    lines.append(
        "Out of reach: what Kafka's brokers keep of it in their own folders until they load a "
        "snapshot, backups and exports made before, and the name itself, which stays in the log."
    )
    return lines


def _values(cluster: ClusterConnection, subject: str) -> SubjectValues | None:
    """Count the subject's values in the log; None: it can't be read."""
    client = LogbergClient(cluster.urls, cluster.access, cluster.deadline_s)
    with asyncio.Runner() as runner:
        runner.run(client.__aenter__())
        try:
            sources = runner.run(find_sources(client, cluster.urls, cluster.deadline_s))
            log = RemoteLog(sources, runner.run)
            with progress("reading the log") as on_progress:

                def told() -> Iterator[Batch]:
                    size = log.log_end - log.log_start
                    for batch in log.batches():
                        on_progress(batch.header.end_offset - log.log_start, size)
                        yield batch

                return values_of(subject, told())
        except (ClientError, LedgerError):
            return None
        finally:
            runner.run(client.__aexit__(None, None, None))


def _wait_for_all(cluster: ClusterConnection, done: EraseReply) -> list[str]:
    """Wait until each controller has destroyed the key; return those that have not, and why."""

    async def wait(client: LogbergClient) -> list[str]:
        quorum = await client.quorum()
        deadline = asyncio.get_running_loop().time() + cluster.deadline_s
        waiting = {each.node_id: "it was not asked" for each in quorum.members}
        while waiting and asyncio.get_running_loop().time() < deadline:
            for node_id in list(waiting):
                waiting[node_id] = await _state(client, quorum, node_id, done.offset)
                if not waiting[node_id]:
                    del waiting[node_id]
            if waiting:
                await asyncio.sleep(_LOOK_S)
        return [f"controller {node_id} ({why})" for node_id, why in sorted(waiting.items())]

    return cluster.ask(wait)


async def _state(client: LogbergClient, quorum: QuorumReply, node_id: int, offset: int) -> str:
    """Return why a controller is not done; empty: it is."""
    url = next((each.url for each in quorum.members if each.node_id == node_id), None)
    if not url:
        return "nobody knows its URL"
    try:
        said = await client.from_one(url, _PATH, ErasuresReply, deadline_s=_ONE_S)
    except ClientError as error:
        return str(error)
    if said.offset < offset:
        return f"it is at offset {said.offset}"
    if said.destroyed >= said.erasures:
        return ""
    return "it is writing" if said.held else "it does not have the keys yet"
