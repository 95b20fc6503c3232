"""An administrator who elects leaders of many partitions, and reassigns many, in one request each.

The requests are written in rounds of a few partitions, and leaders fail between them. Rule: with
one request id through all tries, the answer is that of one execution. What was told to be elected
is what the batches of this request elected, each partition once. What was told to be refused, they
don't change; and what they change was told to be done.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

from metadata.image import MetadataImage
from metadata.records import PartitionChangeRecord, Record
from metadata.uuids import parse_uuid, uuid7, uuid_text
from runtime.http.requests import JSON, Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.simulation.administrators import out_of_time

LARGE_REQUESTS_HOST = 905
_PAUSE_S = 0.5
_TRY_S = 2.0
_TRIES = 12
_REFUSED = {
    "UNKNOWN_TOPIC_OR_PARTITION",
    "NO_REASSIGNMENT_IN_PROGRESS",
    "INVALID_REPLICA_ASSIGNMENT",
    "ELECTION_NOT_NEEDED",
    "PREFERRED_LEADER_NOT_AVAILABLE",
}
"""What one partition may be told."""
Name = tuple[str, int]
Told = dict[Name, str | None]
"""The error of each partition in an answer; None: it is done."""


class LargeRequests:
    """One client, with one request at a time."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.counts: Counter[str] = Counter()
        self._told: dict[bytes, tuple[str, Told, int]] = {}
        """By request id: the path, what was told, and how many were told to be elected."""
        self._written: defaultdict[bytes, dict[int, list[Name]]] = defaultdict(dict)
        """By request id and offset: the partitions that a batch changed."""

    def start(self) -> None:
        """Let it begin."""
        cluster = self._cluster
        self._dice: Random = cluster.world.random("large requests")
        host = SimulatedHost(cluster.world, cluster.network, LARGE_REQUESTS_HOST)
        self._process = host.boot()
        self._requests = host.requests(Caller("User:admin", "token", "10.0.0.9"))
        self._soon()

    def _soon(self) -> None:
        delay = int(self._dice.uniform(0, 2 * _PAUSE_S) * US)
        self._process.schedule(delay, self._begin, "large requests")

    def _begin(self) -> None:
        leader = self._cluster.leader()
        if leader is None or not self._cluster.busy:
            self._soon()
            return
        topics = self._cluster.controllers[leader].image.topics
        names = [
            (name, number)
            for name in topics.names
            for number in topics.ids_of(topics.named(name).topic_id)
        ]
        names.append(("nobody-made-it", 0))
        self._dice.shuffle(names)
        turn = self._dice.random()
        if turn < 0.4:
            self._elect(names)
        elif turn < 0.6:
            self._elect(None)
        else:
            self._move(names)

    def _elect(self, names: list[Name] | None) -> None:
        topics = names and [{"topic": topic, "partitions": [n]} for topic, n in names]
        body = {"electionType": "PREFERRED", "topicPartitions": topics}

        def told(reply: dict[str, Any]) -> tuple[Told, int]:
            found: Told = {
                (topic["topic"], row["partitionId"]): row["error"] and row["error"]["code"]
                for topic in reply["replicaElectionResults"]
                for row in topic["partitionResult"]
            }
            if names is not None and set(found) != set(names):
                self._cluster.world.fail(f"I9: asked to elect {names}, and told {found}", None)
            return found, reply["elected"]

        self._send("/v1/partitions/elect", body, told)

    def _move(self, names: list[Name]) -> None:
        brokers = list(self._cluster.broker_hosts)
        cancels = self._dice.random() < 0.4
        wanted = [
            {"topic": topic, "partition": number}
            | ({} if cancels else {"replicas": self._dice.sample(brokers, 3)})
            for topic, number in names
        ]

        def told(reply: dict[str, Any]) -> tuple[Told, int]:
            rows = reply["partitions"]
            if [(row["topic"], row["partition"]) for row in rows] != names:
                self._cluster.world.fail(f"I9: asked to move {names}, and told {rows}", None)
            codes = [(row.get("error") or {}).get("code") for row in rows]
            return dict(zip(names, codes, strict=True)), 0

        self._send("/v1/reassignments", {"partitions": wanted}, told)

    def _send(
        self, path: str, message: dict[str, Any], told: Callable[[dict[str, Any]], Any]
    ) -> None:
        wall = self._process.clock.wall_ms()
        request_id = uuid_text(uuid7(wall, self._dice.getrandbits(74)))
        headers = {"content-type": JSON, "x-logberg-request-id": request_id}
        request = Request("POST", path, json.dumps(message).encode(), headers=headers)

        def done(reply: dict[str, Any]) -> None:
            found, elected = told(reply)
            strange = {code for code in found.values() if code} - _REFUSED
            if strange:
                self._cluster.world.fail(f"I9: a large request was told {strange}", None)
            self._told[parse_uuid(request_id)] = (path, found, elected)
            self.counts[f"done: {path}"] += 1

        self._try(request, done, 1)

    def _try(self, request: Request, done: Callable[[dict[str, Any]], None], tries: int) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            status = answer.status if isinstance(answer, Reply) else 503
            if isinstance(answer, Reply) and status == 200:
                self.counts["repeated"] += tries > 1
                done(json.loads(answer.body))
                self._soon()
            elif isinstance(answer, Reply) and status not in (421, 429, 503, 507):
                code = json.loads(answer.body)["code"]
                # A request about one partition has its error as its own.
                if code not in _REFUSED and not out_of_time(answer):
                    self._cluster.world.fail(f"I9: a large request was told {answer.body!r}", None)
                self._soon()
            elif tries < _TRIES:
                again = int(self._dice.uniform(0.05, 0.5) * US)
                self._process.schedule(
                    again, lambda: self._try(request, done, tries + 1), "large requests"
                )
            else:
                self.counts["given up"] += 1
                self._soon()

        leader = self._cluster.leader() or self._dice.choice(list(self._cluster.hosts))
        self._requests.request(f"http://controller-{leader}", request, answered, _TRY_S)

    # -- what must hold -------------------------------------------------------------------------

    def note(
        self, image: MetadataImage, request_id: bytes, offset: int, records: list[Record]
    ) -> None:
        """Note which partitions a batch of the log changed. `image`: with the batch."""
        if request_id in self._told:
            self._written[request_id][offset] = [
                (image.topics.by_id[record.topic_id].name, record.partition_id)
                for record in records
                if isinstance(record, PartitionChangeRecord)
            ]

    def judge(self, *, whole_log: bool) -> Counter[str]:
        """Compare what was told with what the requests wrote. Returns the counts."""
        for request_id, (path, told, elected) in self._told.items() if whole_log else ():
            batches = self._written[request_id]
            written = [name for _, names in sorted(batches.items()) for name in names]
            self.counts["partitions"] += len(written)
            self.counts["in rounds"] += len(batches) > 1
            moved = path == "/v1/reassignments"
            done = {name for name, code in told.items() if code is None}
            if len(set(written)) < len(written):
                self._fail(path, told, f"a partition was changed twice: {written}")
            if not set(written) <= done or (not moved and set(written) != done):
                self._fail(path, told, f"the log says {sorted(written)}")
            if not moved and elected != len(written):
                self._fail(path, told, f"{elected} elected, and the log says {len(written)}")
        return Counter({f"large requests: {what}": n for what, n in self.counts.items()})

    def _fail(self, path: str, told: Told, why: str) -> None:
        self._cluster.world.fail(f"I9: {path} was told {told}: {why}", None)
