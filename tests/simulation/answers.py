"""The requests and answers of the clients of a simulated cluster, and their judgement at the end.

Rule: recording takes no event and no random number, so a seed's run is the same without it.
`tests.checkers` and `tests.reference` judge; this module only passes a run to them.
"""

from collections import Counter, defaultdict
from typing import Any

from metadata.uuids import parse_uuid
from tests.checkers import registers, revisions
from tests.checkers.history import (
    AT_LEAST,
    LIST,
    OK,
    REFUSED,
    STALE,
    WRITES,
    Effect,
    Log,
    Operation,
)
from tests.reference.folder import Folder, read_folder
from tests.reference.ledger import Batch, Checkpoint, RefusedError
from tests.reference.schema import encode_array
from tests.reference.state import State
from tests.reference.trace import changes, summaries

STATES_COMPARED = 20
"""Spread over the log: what controllers and brokers had there, against the reference."""
KEYS_SEARCHED = 6
"""Of the names with the most writes: the search is a second opinion, the revisions are the first.
"""


class Answers:
    """Records; one for all clients of a cluster, so that it knows the order of everything."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self._tick = 0
        self.operations: list[Operation] = []

    def asked(self, kind: str, client: str, **about: Any) -> Operation:
        """Note an invocation; answer it or leave it unknown."""
        operation = Operation(kind, self._next(), self._world.now_us, client, **about)
        self.operations.append(operation)
        return operation

    def changed(self, operation: Operation, reply: dict[str, Any]) -> None:
        """A change is acknowledged."""
        operation.told(self._next(), self._world.now_us, OK, reply["offset"])

    def refused(self, operation: Operation, code: str, offset: int | None = None) -> None:
        """A change is refused, for good."""
        operation.told(self._next(), self._world.now_us, REFUSED, offset)
        operation.code = code

    def read(self, operation: Operation, reply: dict[str, Any]) -> None:
        """A list of topics is here."""
        operation.told(self._next(), self._world.now_us, OK, reply["offset"])
        operation.age_ms = reply["ageMs"]
        operation.topics = {
            topic["name"]: [
                parse_uuid(topic["topicId"]).hex(),
                topic["partitionCount"],
                topic["replicationFactor"],
                topic["leaderless"],
                topic["underReplicated"],
            ]
            for topic in reply["topics"]
        }

    def _next(self) -> int:
        self._tick += 1
        return self._tick


class Judgement:
    """Compares all answers with the logs of a cluster at rest, as the reference reads them."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.facts: Counter[str] = Counter()
        self._known: dict[tuple[int, bytes], State] = {}
        """By where a log begins and its last hash: the chain says that all between is the same."""
        self._checkpoints: dict[int, list[tuple[int, Checkpoint]]] = defaultdict(list)
        self.log: Log | None = None

    def judge(self) -> Counter[str]:
        """Fail the world on what does not fit; return what was judged."""
        folders = {n: self._read(n) for n in self.cluster.running()}
        for node_id, folder in folders.items():
            for checkpoint in folder.checkpoints:
                self._checkpoints[checkpoint.offset].append((node_id, checkpoint))
        for node_id, folder in folders.items():
            self._judge_node(node_id, folder)
        if self.log is not None:
            self._judge_answers(self.log)
        return self.facts

    def _read(self, node_id: int) -> Folder:
        try:
            return read_folder(files_of(self.cluster.hosts[node_id].disk()), live=True)
        except RefusedError as error:
            self.cluster.world.fail(f"I13: the reference refuses the folder: {error}", node_id)
            raise

    def _judge_node(self, node_id: int, folder: Folder) -> None:
        key = (folder.begin.end, folder.head)
        if key not in self._known:
            try:
                self._known[key] = self._folded(folder)
            except RefusedError as error:
                self.cluster.world.fail(f"I13: the reference refuses the log: {error}", node_id)
        state, live = self._known[key], self.cluster.controllers[node_id].image
        if state.end != live.offset or state.hash() != live.state_hash.encode():
            self.cluster.world.fail(
                f"I13: the reference has another state at {state.end}, or the image is not "
                f"there: {live.offset}",
                node_id,
            )
        self.facts["ledgers equal to the reference"] += 1

    def _folded(self, folder: Folder) -> State:
        state = folder.first_state()
        log = Log(state.end, dict(summaries(state, state.tables["topics"]).values()), [])
        due = [batch for batch in folder.batches if batch.base >= state.end]
        every = max(1, len(due) // STATES_COMPARED)
        for number, (batch, topics) in enumerate(changes(state, due)):
            if state.began is None:  # else nothing is visible before the transaction's last batch
                request_id = batch.request_id.hex()
                others = (self.cluster.clearers.asked, self.cluster.right_seekers.asked)
                if any(request_id in asked for asked in others):
                    # `clearers` judges those about several topics, `right_seekers` its own.
                    request_id = ""
                log.effects.append(
                    Effect(batch.end, batch.epoch, request_id, batch.operation, topics)
                )
            for node_id, checkpoint in self._checkpoints.pop(batch.end, ()):
                self._compare_checkpoint(checkpoint, batch, state, node_id)
            if number % every == 0:
                self._compare_state(state)
        if self.log is None or log.begin < self.log.begin:
            self.log = log
        return state

    def _compare_checkpoint(
        self, checkpoint: Checkpoint, batch: Batch, state: State, node_id: int
    ) -> None:
        """A checkpoint is the state of the reference, byte for byte."""
        same = (
            checkpoint.chain_hash == batch.hash
            and checkpoint.state_hash == state.hash()
            and checkpoint.records == encode_array(state.snapshot())
        )
        if not same:
            self.cluster.world.fail(
                f"I13: the checkpoint at {batch.end} is not what the reference has", node_id
            )
        self.facts["checkpoints equal to the reference"] += 1

    def _compare_state(self, state: State) -> None:
        """Check that every controller and broker at this offset had the reference's state."""
        shared = self.cluster.invariants.states.get(state.end)
        if shared is not None and state.began is None:
            if shared.to_bytes(32, "big") != state.hash()[:32]:
                self.cluster.world.fail(f"I4: the reference has another state at {state.end}", None)
            self.facts["states equal to the reference"] += 1

    def _judge_answers(self, log: Log) -> None:
        operations = self.cluster.answers.operations
        hosts = self.cluster.hosts.values()
        slowest = min((host.machine.slowest for host in hosts), default=1.0)
        found = revisions.violations(operations, log, slowest)
        if found:
            self.cluster.world.fail("I7: " + "\n    ".join(found[:5]), None)
        self.facts += revisions.judged(operations, log)
        self.facts["ages judged"] += sum(
            each.kind in (STALE, AT_LEAST) and each.offset is not None and each.age_ms is not None
            for each in operations
        )
        lists = [each for each in operations if each.kind == LIST and each.topics is not None]
        asked = Counter(each.topic for each in operations if each.kind in WRITES)
        for topic, _ in asked.most_common(KEYS_SEARCHED):
            mine = [each for each in operations if each.kind in WRITES and each.topic == topic]
            verdict = registers.search(registers.steps_of([*mine, *lists], topic))
            if verdict is not registers.Verdict.LEGAL:
                self.cluster.world.fail(f"I7: the answers about {topic}: {verdict.value}", None)
            self.facts["names searched"] += 1


def files_of(disk: Any) -> dict[str, bytes]:
    """Return the files of a node's folder that docs/format.md describes."""
    return {
        f"{folder}/{name}": disk.read(f"{folder}/{name}")
        for folder in ("log", "archive", "checkpoints")
        for name in disk.list(folder)
    }
