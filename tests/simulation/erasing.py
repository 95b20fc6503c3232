"""Administrators who erase users while others set credentials (kind `erasures`).

- E1: once a node's image has an erasure, the node opens no value of the erased subject again, not
  in this life and in none that follows. A node that starts after some node had the erasure opens
  none either, whatever its own image has.
- E2: at rest, nobody opens such a value who has the cluster key and the folders of all nodes.
- E3: at rest every value that is not erased is opened by every node, and all nodes hold the same
  tree of keys.
- E5: in every second seed addresses are sealed. Then no user's address is in the log in clear, and
  E2 and E3 hold for addresses, too.
- E6: in every third seed, some users are people with pseudonyms. Then no byte of the log has a
  person's name, nobody has two pseudonyms, and E1 to E4 hold for what ties name and pseudonym:
  whoever was erased has nothing any more.
- E4: what is acknowledged as set and not erased since is there, and its value opens (S1 and S3 of
  `clients`).

The people of E6 ask agents, too: rule E7 is in `people_at_agents`.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ledger.batch import Batch
from metadata.codec import decode_records
from metadata.people import opened_name
from metadata.pseudonyms import name_place
from metadata.records import PseudonymRecord, SubjectErasedRecord, UserScramCredentialRecord
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
PEOPLE = "@people.example"
_KINDS_OF_PEOPLE = ("acl", "quota")
"""Erasers ask for entries and quotas in the name of people, and about them."""


class Eraser(Administrator):
    """Sets credentials of users, and erases them."""

    def _act(self) -> None:
        if not self._crowd.cluster.busy:
            self.go_on()
        elif self._crowd.cluster.shape.pseudonyms and self._dice.random() < 0.7:
            acts = (self._acl, self._quota, self._read_of_person, self._erase_person)
            self._dice.choice(acts)()
        elif self._dice.random() < 0.6:
            self._scram()
        else:
            self._erase()

    def _ending(self, kind: str) -> str:
        has_person = self._crowd.cluster.shape.pseudonyms and kind in _KINDS_OF_PEOPLE
        return PEOPLE if has_person else ""

    def _read_of_person(self) -> None:
        self._read(self._dice.choice(_KINDS_OF_PEOPLE))

    def _erase_person(self) -> None:
        """Erase somebody who may have an entry or a quota: then they have it no more."""
        kind = self._dice.choice(_KINDS_OF_PEOPLE)
        name = self._name(kind)
        self.possible[kind, name] = [*self.possible[kind, name], None]

        def done(reply: dict[str, Any]) -> None:
            self.possible[kind, name] = [None]
            what = "unknown people" if "code" in reply else "people"
            self._crowd.facts[f"erasures of {what}"] += 1

        def unknown() -> None:
            del self._current[kind]

        subject = {"subject": f"user:{name}"}
        self._send("POST", "/v1/erasures", subject, done, unknown, ("NOT_FOUND",))

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
        name = _about(body)
        if name.endswith(PEOPLE) and self._dice.random() < 0.5:
            caller = Caller(f"User:{name}", "certificate", ADDRESS)
        elif self._crowd.cluster.shape.sealed_addresses and not name.endswith(PEOPLE):
            caller = Caller(f"User:{name}", "token", ADDRESS)
        super()._send(method, path, body, done, unknown, legal, caller)


def _about(body: dict[str, Any]) -> str:
    """Return the name of the user that a request is about; empty: none."""
    about = [*body.get("upsertions", ()), *body.get("deletions", ())]
    entries = [*body.get("acls", ()), *body.get("filters", ())]
    if about:
        return str(about[0]["name"])
    if entries:
        return str(entries[0]["principal"]).removeprefix("User:")
    if "entries" in body:
        return str(body["entries"][0]["entity"][0]["entityName"])
    return str(body.get("subject", "")).removeprefix("user:")


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

    def name_in(self, image: Any, name: str) -> str:
        """Return what stands for a name in an image: a person's pseudonym, or the name itself."""
        if not name.endswith(PEOPLE):
            return name
        key = self._cluster.opening_key()
        pseudonyms = [
            pseudonym
            for pseudonym, record in image.erasures.pseudonyms.items()
            if opened_name(key, record) == name
        ]
        if len(pseudonyms) > 1:
            self._fail(f"E6: {name} has the pseudonyms {pseudonyms}")
        return pseudonyms[0] if pseudonyms else name

    def at_the_end(self) -> Counter[str]:
        """E2, E3 and E6."""
        running = self._cluster.running()
        leader = running[self._cluster.leader()]
        if leader.ledger.log_start:
            return self.facts
        batches = list(leader.ledger.batches(0))
        if any(PEOPLE.encode() in batch.encoded for batch in batches):
            self._fail("E6: the log has a person's name")
        records = [record for batch in batches for record in decode_records(batch.records)]
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
        blocks += self._addresses(batches)
        people = [record for record in records if isinstance(record, PseudonymRecord)]
        blocks += [(name_place(record.pseudonym), record.name) for record in people]
        self.facts["pseudonyms"] += len(people)
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
