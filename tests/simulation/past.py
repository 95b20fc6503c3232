"""At the end, the past is read from the controllers that run, as `--at` reads it (kind `clients`).

- P1: what controllers send of their logs and snapshots, replayed, is the state that the ledger of a
  controller gives at that offset, whichever of them sends what.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar

from audit.places.replicas import Replica
from audit.places.tree_disk import TreeDisk
from audit.questions.state import state_at
from audit.reading.replay import Fold
from ledger.chain import LogMark
from logberg.client.client_errors import ClientError
from logberg.client.remote_log import RemoteLog, find_sources
from logberg.client.remote_snapshots import RemoteSnapshots
from logberg.client.tries import Retry, read_answer
from metadata.image import EMPTY, MetadataImage
from runtime.http.requests import Reply, Request, Unreachable, whole

T = TypeVar("T")
_DEADLINE_S = 5.0


class _Client:
    """Asks simulated controllers, as `logberg.client.asking` asks real ones."""

    def __init__(self, cluster: Any) -> None:
        self._world, self._requests = cluster.world, cluster.clients.requests

    async def from_one(
        self,
        url: str,
        path: str,
        reply: type[T],
        query: Mapping[str, str] | None = None,
        deadline_s: float = _DEADLINE_S,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        """Ask one controller, and let the world go on until it has answered."""
        answers: list[Reply | Unreachable] = []
        request = Request("GET", path, query=dict(query or {}), headers=dict(headers or {}))
        self._requests.request(url, request, answers.append, deadline_s)
        self._world.run_for(deadline_s + 1, lambda: bool(answers))
        (answer,) = answers
        if not isinstance(answer, Reply):
            raise ClientError("NO_ANSWER", str(answer))
        try:
            return read_answer(answer.status, whole(answer).body, url, reply)
        except Retry as retry:
            raise retry.error from None


def judge_past(cluster: Any) -> Counter[str]:
    """P1, at some offsets; returns what was seen."""
    facts: Counter[str] = Counter()
    ledgers = [each.ledger for each in cluster.running().values()]
    ledger = next((ledger for ledger in ledgers if ledger.log_start == 0), None)
    if ledger is None:
        return facts
    dice = cluster.world.random("past")
    urls = [f"http://controller-{n}" for n in cluster.running()]
    dice.shuffle(urls)
    client: Any = _Client(cluster)
    sources = asyncio.run(find_sources(client, urls, _DEADLINE_S))
    log = RemoteLog(sources, asyncio.run)
    # The log's beginning has no snapshot before it, and its end has.
    end = log.log_end
    for least in (0, end * 3 // 4, end):
        snapshots = RemoteSnapshots(sources, asyncio.run, lambda _done, _size: None)
        replica = Replica("simulated", sources.location, TreeDisk(snapshots))
        offset = dice.randrange(least, end + 1)
        moment = log.end_of_batch(offset)
        state = state_at(replica, moment, reader=log)
        expected = _replayed(ledger, log.cluster_id, moment)
        damaged = cluster.fault_atlas is not None
        unused = not damaged and any("is not used" in note for note in state.notes)
        if state.offset != moment or not state.image.same_state(expected) or unused:
            cluster.world.fail(
                f"P1: the past at {offset}, from {state.checkpoint or 'the log'}, is not what the "
                f"ledger says: {state.notes}",
                None,
            )
        facts["past states"] += 1
        facts["past states from a snapshot"] += bool(state.checkpoint)
    return facts


def _replayed(ledger: Any, cluster_id: str, offset: int) -> MetadataImage:
    fold = Fold(EMPTY, LogMark.beginning(cluster_id))
    for batch in ledger.batches(0):
        if batch.header.base_offset >= offset:
            break
        fold.take(batch)
    return fold.image
