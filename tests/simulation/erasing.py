"""Administrators who erase users while others set credentials (kind `erasures`).

- E1: once a node's image has an erasure, the node opens no value of the erased subject again, not
  in this life and in none that follows. A node that starts after some node had the erasure opens
  none either, whatever its own image has.
- E2: at rest, nobody opens such a value who has the cluster key and the folders of all nodes.
- E3: at rest every value that is not erased is opened by every node, and all nodes hold the same
  tree of keys.
- E5: in every second seed addresses are sealed. Then no user's address is in the log in clear, and
  E2 and E3 hold for addresses, too.
- E4: what is acknowledged as set and not erased since is there, and its value opens (S1 and S3 of
  `clients`).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ledger.batch import Batch
from metadata.codec import decode_records
from metadata.records import SubjectErasedRecord, UserScramCredentialRecord
from metadata.sealed_addresses import address_place
from metadata.sealed_blocks import SealingError, number_of_block
from metadata.sealed_places import opened_tree, scram_place
from metadata.sealed_texts import block_of_text
from metadata.sealing import ClusterKey
from runtime.http.requests import Caller
from tests.simulation.clients import KEY, Administrator, Take

ERASERS = 3
ADDRESS = "10.0.7.1"
"""From where erasers ask, if addresses are sealed."""


class Eraser(Administrator):
    """Sets credentials of users, and erases them."""

    def _act(self) -> None:
        if not self._crowd.cluster.busy:
            self.go_on()
        elif self._dice.random() < 0.6:
            self._scram()
        else:
            self._erase()

    def _erase(self) -> None:
        name = self._name("scram")
        before = self.possible["scram", name]
        self.possible["scram", name] = [*before, None]

        def done(reply: dict[str, Any]) -> None:
            self.possible["scram", name] = [None]
            self._crowd.facts["erasures"] += 1

        def unknown() -> None:
            del self._current["scram"]

        self._send("POST", "/v1/erasures", {"subject": f"user:{name}"}, done, unknown)

    def _send(
        self,
        method: str,
        path: str,
        body: dict[str, Any],
        done: Take,
        unknown: Callable[[], None],
        legal: tuple[str, ...] = (),
        caller: Caller | None = None,
    ) -> None:
        """Ask in the name of the user whom it is about, so that an erasure reaches the address."""
        if self._crowd.cluster.shape.sealed_addresses:
            about = [*body.get("upsertions", ()), *body.get("deletions", ())]
            name = about[0]["name"] if about else body["subject"].removeprefix("user:")
            caller = Caller(f"User:{name}", "token", ADDRESS)
        super()._send(method, path, body, done, unknown, legal, caller)


class ErasedValues:
    """Watches what nodes can open. Idle unless the shape asks for it."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._seen: dict[int, object] = {}
        self._known: dict[bytes, str] = {}
        """The numbers that some node's image has as erased, and their subjects."""
        self._at_start: dict[int, tuple[ClusterKey, dict[bytes, str]]] = {}
        """By node: the key of its present life, and what was known when that began."""
        self._counts: dict[int, int] = {}
        self.facts: Counter[str] = Counter()

    def after_event(self, _process: Any) -> None:
        """E1."""
        for node_id, controller in self._cluster.running().items():
            erasures = controller.image.erasures
            keys = self._cluster.keys_of.get(node_id)
            if keys is None:
                continue
            life = self._at_start.get(node_id)
            if life is None or life[0] is not keys:
                life = self._at_start[node_id] = (keys, dict(self._known))
            if len(erasures.erased) > self._counts.get(node_id, 0):
                for record in erasures.erased.values():
                    self._known.update(dict.fromkeys(record.numbers, record.subject))
            self._counts[node_id] = len(erasures.erased)
            if keys.subjects.keys is None:
                continue
            seen = (erasures, keys.subjects.keys)
            if self._seen.get(node_id) == seen:
                continue
            self._seen[node_id] = _Identical(seen)
            for record in erasures.erased.values():
                for number in record.numbers:
                    if keys.subjects.key_of(number) is not None:
                        self._fail(f"E1: node {node_id} can make the key of {record.subject}")
            for number, subject in life[1].items():
                if keys.subjects.key_of(number) is not None:
                    self._fail(f"E1: node {node_id} has come back with the key of {subject}")
            self.facts["looks at what nodes can open"] += 1

    def at_the_end(self) -> Counter[str]:
        """E2 and E3."""
        running = self._cluster.running()
        leader = running[self._cluster.leader()]
        if leader.ledger.log_start:
            return self.facts
        records = [
            record for batch in leader.ledger.batches(0) for record in decode_records(batch.records)
        ]
        erased = {
            number
            for record in records
            if isinstance(record, SubjectErasedRecord)
            for number in record.numbers
        }
        blocks = [
            (scram_place(record.name, record.mechanism, field), block)
            for record in records
            if isinstance(record, UserScramCredentialRecord)
            for field, block in (
                ("storedKey", record.stored_key),
                ("serverKey", record.server_key),
            )
        ]
        blocks += self._addresses(leader.ledger.batches(0))
        holders = [(f"node {n}", self._cluster.keys_of[n]) for n in running]
        for node_id in running:
            holders += [(f"the folder of node {node_id}", key) for key in self._on_disk(node_id)]
        for place, block in blocks:
            number = number_of_block(block)
            gone = number in erased
            for who, key in holders:
                if _opens(key, place, block) is gone:
                    what = "opens an erased value" if gone else "can't open a value"
                    self._fail(f"{'E2' if gone else 'E3'}: {who} {what}: {place}")
            self.facts["values erased" if gone else "values kept"] += 1
        trees = {repr(self._tree_of(node_id)) for node_id in running}
        if len(trees) > 1:
            self._fail(f"E3: the nodes hold {len(trees)} different trees")
        return self.facts

    def _addresses(self, batches: Iterable[Batch]) -> list[tuple[str, bytes]]:
        """Return place and block of the sealed addresses. E5."""
        found = {}
        for batch in batches:
            said = batch.header.provenance
            if not said.principal.startswith("User:") or not said.client_address:
                continue
            block = block_of_text(said.client_address)
            if block is not None:
                found[address_place(said.principal), block] = True
            elif self._cluster.shape.sealed_addresses:
                self._fail(f"E5: the address of {said.principal} is in clear")
        self.facts["sealed addresses"] += len(found)
        return list(found)

    def _tree_of(self, node_id: int) -> Any:
        keys = self._cluster.keys_of[node_id].subjects.keys
        return None if keys is None else keys.encode()

    def _on_disk(self, node_id: int) -> list[ClusterKey]:
        """Return the cluster key with each tree in a node's folder."""
        found = []
        disk = self._cluster.hosts[node_id].disk()
        for name in disk.list("keys"):
            key = KEY.copy()
            key.subjects.keys = opened_tree(key, name, disk.read(f"keys/{name}"))
            found.append(key)
        return found

    def _fail(self, why: str) -> None:
        self._cluster.world.fail(why, None)


class _Identical:
    """Equals a tuple only if its members are the same objects."""

    def __init__(self, seen: tuple[object, ...]) -> None:
        self._seen = seen

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and all(map(lambda a, b: a is b, self._seen, other))

    __hash__ = None


def _opens(key: ClusterKey, place: str, block: bytes) -> bool:
    try:
        key.open(place, block)
    except SealingError:
        return False
    return True
