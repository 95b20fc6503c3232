"""`logberg erase`: destroy the key of a user's secrets on every controller, for good (ADR 0093).

Rule: the command shows first what it destroys and what it can't reach, and asks. It ends when every
controller that answers has destroyed the key, and names those that have not.
"""

import asyncio
import sys
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
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
from logberg.client.cluster_key_file import read_cluster_key, with_fetched_keys
from logberg.client.remote_log import RemoteLog, find_sources
from logberg.client.request_ids import new_request_id
from metadata.messages import EraseReply, ErasuresReply, QuorumReply, SubjectKeysReply
from metadata.messages.erasure import EARLIER_MAX
from metadata.pseudonyms import is_pseudonym
from metadata.sealed_addresses import FROM, AddressOpener, network_of_address
from metadata.sealed_blocks import SealingError
from metadata.subject_keys import SubjectKeysError
from runtime.disk.secret_file import SecretFileError

_PATH: Final = "/v1/erasures"
_ERASED: Final = "SUBJECT_ERASED_RECORD"
_LOOK_S: Final = 0.2
_ONE_S: Final = 2.0


@click.command("erase")
@click.argument("subject")
@click.option("--yes", is_flag=True, help="Erase without asking.")
@click.option(
    "--cluster-key",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Of an address: the cluster key, to find what it has from before another was erased.",
)
@change_options
def command(
    *,
    subject: str,
    yes: bool,
    cluster_key: Path | None,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Make the values of SUBJECT unreadable, in the log and in all that is made of it.

    SUBJECT is user:NAME or from:ADDRESS. Every controller destroys the key under which the values
    are sealed. The log stays as it is: no byte changes, and every proof still holds. This can't be
    undone.

    Of a user, SCRAM keys become unreadable, and addresses if they are sealed. Its credentials and
    delegation tokens are removed, and its access tokens are revoked. Of a person who has a
    pseudonym, nobody can say any more whose it was. Of an address, it is the
    address itself in attempts of callers who were not authenticated.

    The command first says what stays out of reach: values from before logberg.version 6, addresses
    in clear, what backups and exports that were made before hold, and what Kafka's brokers keep on
    their disks. The user's name stays in the log, unless it is there as a pseudonym.
    """
    same = msgspec.structs.replace(change, request_id=change.request_id or new_request_id())
    plan = cluster.ask(lambda client: client.erase(subject, dry_run=True))
    values = _values(cluster, plan)
    earlier = _earlier(cluster, plan, values, cluster_key)
    if is_pseudonym(_principal(plan.subject)):
        # What is asked by the pseudonym keeps its meaning when nobody knows the name any more.
        subject = plan.subject
    if output != "json":
        for line in planned(plan, values, earlier):
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
    done = cluster.ask(
        lambda client: client.erase(subject, earlier=earlier or (), **same.arguments())
    )
    print_change(
        done,
        output,
        f"erased {subject} (offset {done.offset})",
        "Backups, exports and tables that were made before this offset may still hold its sealed "
        "values, and copies of the controllers' folders its key: delete them.",
    )
    again = _again(subject, same.request_id)
    try:
        waiting = _wait_for_all(cluster, done)
    except KeyboardInterrupt:
        raise _unsure("interrupted", again) from None
    except Failure as failure:
        raise _unsure(failure.message, again) from None
    if waiting:
        raise Failure(
            "these controllers have not destroyed the key yet, and do it before they use any key "
            f"again: {'; '.join(waiting)}. {again}"
        )


def _again(subject: str, request_id: str | None) -> str:
    """Return how to ask again: not for an address or a pseudonym, which nobody knows any more."""
    if subject.startswith(FROM) or is_pseudonym(_principal(subject)):
        return "See that `destroyed` equals `erasures` at GET /v1/erasures of each controller"
    return f"Ask again with --request-id {request_id}"


def _unsure(why: str, again: str) -> Failure:
    """Return the failure of a wait that ended before every controller was asked."""
    return Failure(
        f"the erasure is in the log, but whether every controller has destroyed the key is not "
        f"known ({why}). {again}"
    )


def planned(
    plan: EraseReply, values: SubjectValues | None, earlier: Sequence[str] | None
) -> list[str]:
    """Return what is erased, and what can't be reached, as lines.

    `earlier` None: nobody could look which older addresses are the subject's.
    """
    of_address = plan.subject.startswith(FROM)
    if of_address:
        first = f"{plan.subject}: its key is destroyed on every controller."
    else:
        first = (
            f"{plan.subject}: {plan.credentials} credentials and {plan.tokens} delegation tokens "
            f"are removed, {plan.access_tokens} access tokens are revoked, and the key of its "
            "secrets is destroyed on every controller."
        )
    lines = [first]
    if values is None:
        lines.append("The log could not be read, so nobody counted what it has of the subject.")
    else:
        lines += _counted(plan.subject, values, earlier)
    kept, processes = "backups and exports made before", "what the processes' own logs say"
    if of_address:
        lines.append(f"Out of reach: {kept}, and {processes}.")
    elif is_pseudonym(_principal(plan.subject)):
        lines.append(
            f"Out of reach: {kept}, {processes}, and what people wrote into reasons. What the "
            "person did stays in the log under the pseudonym, and so do entries about it."
        )
    else:
        lines.append(
            "Out of reach: what Kafka's brokers keep of it in their own folders until they load a "
            f"snapshot, {kept}, and the name itself, which stays in the log."
        )
    return lines


def _principal(subject: str) -> str:
    return f"User:{subject.removeprefix('user:')}"


def _counted(subject: str, values: SubjectValues, earlier: Sequence[str] | None) -> list[str]:
    lines, kept = [], values.cluster_key + values.in_clear
    if values.own_key:
        lines.append(f"The log has {values.own_key} sealed values that become unreadable.")
    if values.addresses:
        lines.append(f"The log has {values.addresses} sealed addresses that become unreadable.")
    if not (values.own_key or values.addresses or kept or values.batches_in_clear):
        what = "address" if subject.startswith(FROM) else "secret"
        lines.append(f"The log has no {what} of {subject}: check the name.")
    if earlier:
        lines.append(f"{len(earlier)} older keys of this address are destroyed with it.")
    if earlier is None and values.older:
        lines.append(
            f"{len(values.older)} addresses are sealed from before another address was erased. "
            "Nobody looked which of them are this one: give --cluster-key."
        )
    if kept:
        lines.append(
            f"Out of reach: {kept} values in {values.batches_out_of_reach} batches before "
            f"offset {values.last_out_of_reach}, from before subjects had keys "
            f"({values.cluster_key} sealed under the cluster key, {values.in_clear} in clear). "
            "Let the user choose another password."
        )
    if values.batches_in_clear:
        lines.append(
            f"Out of reach: the addresses in clear in {values.batches_in_clear} batches before "
            f"offset {values.last_in_clear}. The setting seal_addresses seals those that come."
        )
    return lines


def _earlier(
    cluster: ClusterConnection,
    plan: EraseReply,
    values: SubjectValues | None,
    path: Path | None,
) -> list[str] | None:
    """Return the older sealed texts of an address; None: nobody could look. Raises Failure."""
    if not plan.subject.startswith(FROM) or values is None:
        return None
    if not values.older or path is None:
        return None if values.older else []
    try:
        reply = cluster.ask(lambda client: client.get("/v1/subject-keys", SubjectKeysReply))
        key = with_fetched_keys(read_cluster_key(path), reply)
    except (SecretFileError, SealingError, SubjectKeysError) as error:
        raise Failure(str(error)) from None
    opener, wanted = AddressOpener(key), plan.subject.removeprefix(FROM)
    network = network_of_address(wanted)
    found = [text for text in values.older.values() if opener.opened("", text) == network]
    return found[:EARLIER_MAX]


def _values(cluster: ClusterConnection, plan: EraseReply) -> SubjectValues | None:
    """Count the subject's values in the log; None: it can't be read."""
    numbers = numbers_of(plan)
    kind, _, name = plan.subject.partition(":")
    subject = plan.subject
    if kind + ":" == FROM:
        subject = FROM + (network_of_address(name) or name)
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

                return values_of(subject, told(), numbers)
        except (ClientError, LedgerError):
            return None
        finally:
            runner.run(client.__aexit__(None, None, None))


def numbers_of(plan: EraseReply) -> list[bytes]:
    """Return the numbers whose keys a planned erasure destroys."""
    found = []
    for record in plan.records:
        data = record.get("data") if record.get("type") == _ERASED else None
        numbers = data.get("numbers") if isinstance(data, dict) else None
        for number in numbers if isinstance(numbers, list) else ():
            with suppress(TypeError, ValueError):
                found.append(b64decode(number))
    return found


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
