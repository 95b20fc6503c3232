"""Heads are signed while faults strike, keys rotate, one key is stolen, and one controller lies.

Invariant I26: a head that is in the log or that any node serves has the root of the log's first so
many batches, under right signatures of a majority, each by a key that the log names for that voter.
So no two heads contradict each other. A key changes by itself only if the key before has signed. A
controller whose history is another one than it signed, or than a majority signed, signs no more.
Heads don't make the log grow without news.

The roots are computed here by RFC 6962's own definition, from the log at the end.
"""

import json
from collections import Counter
from functools import partial
from hashlib import sha256
from typing import Any

from audit.questions.head_keys import HeadAudit, HeadEvent
from controller.managers.head_keys import key_of
from controller.signing.messages import HeadSigned, KeyRotation
from ledger.merkle.heads import TreeHead, origin_of, rotation_text
from ledger.merkle.notes import NoteKey, SignedNote, SigningKey
from ledger.reader import LedgerReader
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US, Process

HOST = 906
CLUSTER_ID = "simulated-cluster-0002"
INTERVAL_S = 0.7
_ACTS_PER_S = 3.0
_TRY_S = 2.0
_REST_S = 60.0


class RewrittenTree:
    """A tree of another history from some size on."""

    def __init__(self, tree: Any, since: int) -> None:
        self._tree, self._since = tree, since
        self.believed = True
        self.first = tree.first

    @property
    def size(self) -> int:
        size: int = self._tree.size
        return size

    @property
    def end_offset(self) -> int:
        end_offset: int = self._tree.end_offset
        return end_offset

    def root(self, size: int) -> bytes:
        root: bytes = self._tree.root(size)
        return root if size < self._since else sha256(b"another history" + root).digest()


class SignedHeads:
    """Idle unless the shape asks for it."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.counts: Counter[str] = Counter()
        self._dice = cluster.world.random("heads")
        self._seen: dict[int, str] = {}
        """By node: the head that it served after its last event."""
        self._roots: dict[int, bytes] = {}
        """By size, of every head that any node served."""
        self._keys: dict[bytes, int] = {}
        """Every key that an image named, and whose it is."""
        self._first_seeds: dict[int, bytes] = {}
        """By node, the key that its process draws at its first start."""
        self._liars: dict[int, Process] = {}
        self._ended: dict[int, tuple[Any, Any]] = {}
        """By node: what signs there, and the last head that it signed before it found that its
        history is another one."""

    def settings(self, node_id: int) -> dict[str, Any]:
        """Return the settings of a controller that signs."""
        world = self._cluster.world
        drawn = world.random(f"next head key/{node_id}")
        first = self._first_seeds.get(node_id) or drawn.randbytes(32)
        self._first_seeds[node_id] = first
        return {
            "head_seed": first,
            "new_head_seed": partial(drawn.randbytes, 32),
            "head_interval_s": INTERVAL_S,
        }

    def start(self) -> None:
        """Let the operator and the thief begin."""
        self._host = SimulatedHost(self._cluster.world, self._cluster.network, HOST)
        self._process = self._host.boot()
        self._requests = self._host.requests(Caller("User:keys", "token", "10.0.0.14"))
        self._cluster.world.after_event(self.after_event)
        self._plan()

    def _plan(self) -> None:
        delay = int(self._dice.expovariate(_ACTS_PER_S) * US)
        self._process.schedule(delay, self._act, "heads")

    # -- what happens -----------------------------------------------------------------------------

    def _act(self) -> None:
        self._plan()
        if not self._cluster.busy or self._cluster.healed:
            return
        acts = (
            self._rotate,
            self._tell_forged_head,
            self._sign_with_strange_key,
            self._steal_key,
            self._lie,
        )
        self._dice.choice(acts)()

    def _rotate(self) -> None:
        node_id = self._dice.choice(list(self._cluster.hosts))
        number = uuid7(self._process.clock.wall_ms(), self._dice.getrandbits(74))
        headers = {
            "content-type": "application/json",
            "x-logberg-request-id": uuid_text(number),
            "x-logberg-reason": "simulation",
        }
        body = json.dumps({"nodeId": node_id}).encode()

        def answered(answer: Reply | Unreachable) -> None:
            status = answer.status if isinstance(answer, Reply) else 0
            self.counts[f"rotations asked for: {status}"] += 1
            if status == 200:
                # Now another key is expected.
                self._process.schedule(1, partial(self._steal_key_of, node_id), "a thief")

        leader = self._cluster.leader() or node_id
        request = Request("POST", "/v1/quorum/head-keys", body, headers=headers)
        self._requests.request(f"http://controller-{leader}", request, answered, _TRY_S)

    def _victims(self) -> tuple[int, Any, int, Any] | None:
        """Return two controllers that run and sign: whose key is stolen, and who is told."""
        signing = [
            (node_id, controller._signing)
            for node_id, controller in sorted(self._cluster.running().items())
            if controller._signing is not None and controller._signing._own is not None
        ]
        if len(signing) < 2:
            return None
        (robbed, theirs), (told, own) = self._dice.sample(signing, 2)
        return robbed, theirs, told, own

    def _tell_forged_head(self) -> None:
        """Whoever has stolen one key signs another history with it."""
        found = self._victims()
        if found is None:
            return
        robbed, theirs, told, own = found
        head = TreeHead(own._own.origin, own._own.size, self._dice.randbytes(32))
        key = theirs.key()
        signature = key.sign(head.text).signature
        message = HeadSigned(True, head.size, head.root, key.public.public, signature)
        self._tell(told, robbed, message.encode())
        self.counts["forged heads"] += 1

    def _sign_with_strange_key(self) -> None:
        """Whoever has a controller's TLS key, and not its key for heads, signs as that one."""
        found = self._victims()
        if found is None:
            return
        robbed, _, told, own = found
        strange = SigningKey(own._own.origin, self._dice.randbytes(32))
        signature = strange.sign(own._own.text).signature
        public = strange.public.public
        message = HeadSigned(False, own._own.size, own._own.root, public, signature)
        self._tell(told, robbed, message.encode())
        self.counts["heads under a strange key"] += 1

    def _steal_key(self) -> None:
        self._steal_key_of(self._dice.choice(list(self._cluster.hosts)))

    def _steal_key_of(self, robbed: int) -> None:
        """Somebody without the key before says that another one replaces it."""
        leader = self._cluster.leader()
        if leader is None:
            return
        image = self._cluster.controllers[leader].image
        named = key_of(image, robbed)
        if named is None:
            return
        origin = origin_of(CLUSTER_ID, image.quorum.generation)
        thief = SigningKey(origin, self._dice.randbytes(32))
        text = rotation_text(origin, robbed, named.public_key, thief.public.public)
        signature = thief.sign(text).signature
        message = KeyRotation(thief.public.public, signature, signature)
        self._tell(leader, robbed, message.encode())
        self.counts["keys that a thief drew"] += 1

    def _tell(self, told: int, sender: int, data: bytes) -> None:
        controller = self._cluster.controllers[told]
        process = self._cluster.hosts[told].process
        if process.alive and not process.paused:
            process.run(lambda: controller.on_digest(sender, data, True), "a thief's message")

    def _lie(self) -> None:
        """A controller's history is rewritten from some place on, until it starts again."""
        found = self._victims()
        if found is None or any(process.alive for process in self._liars.values()):
            return
        node_id, signing, _, _ = found
        tree_of = signing._tree
        tree = tree_of()
        if tree is None or tree.size < 2:
            return
        since = self._dice.randrange(1, tree.size)
        self._liars[node_id] = self._cluster.hosts[node_id].process

        def rewritten() -> Any:
            tree = tree_of()
            return None if tree is None else RewrittenTree(tree, since)

        signing._tree = rewritten
        self.counts["controllers with a rewritten history"] += 1

    # -- I26 --------------------------------------------------------------------------------------

    def after_event(self, process: Process | None) -> None:
        if process is None or not process.alive:
            return
        controller = self._cluster.controllers.get(process.node_id)
        if controller is None or controller._signing is None:
            return
        for node_id, key in controller.image.heads.keys.items():
            self._keys[key.public_key] = node_id
        self._look_at_end(process.node_id, controller._signing)
        note = controller.signed_head
        if note and note != self._seen.get(process.node_id):
            self._seen[process.node_id] = note
            self._served(process.node_id, note)

    def _look_at_end(self, node_id: int, signing: Any) -> None:
        """Whoever knows that its history is another one signs nothing more."""
        before, last = self._ended.get(node_id, (None, None))
        if before is signing and signing._own is not last:
            self._fail("signed although its history is another one", node_id)
        if signing.contradiction and before is not signing:
            self.counts["rewritten histories found"] += 1
            self._ended[node_id] = (signing, signing._own)
            if node_id not in self._liars:
                self._fail("takes its own history for a rewritten one", node_id)

    def _served(self, node_id: int, text: str) -> None:
        note = SignedNote.parse(text.encode())
        head = TreeHead.parse(note.text)
        if self._roots.setdefault(head.size, head.root) != head.root:
            self._fail(f"another head of {head.size} batches was served", node_id)
        known = [NoteKey(head.origin, public) for public in self._keys]
        signers = {self._keys[key.public] for key in note.signers(known)}
        if len(signers) <= len(self._cluster.hosts) // 2:
            self._fail(f"serves a head that {sorted(signers)} signed", node_id)

    def judge(self) -> Counter[str]:
        """Compare all heads with the log of a cluster at rest; return what was counted."""
        cluster = self._cluster
        for node_id, process in self._liars.items():
            if process.alive:
                cluster.hosts[node_id].kill()
                cluster.start(node_id)
        if not cluster.world.run_for(_REST_S, self._settled):
            said = {n: c._signing.problem for n, c in cluster.running().items()}
            self._fail(f"no head of all that is committed: {said}", None)
        for node_id, controller in sorted(cluster.running().items()):
            if controller.ledger.log_start == 0:
                self._judge_log(node_id)
                return self.counts
        self.counts["no node has the whole log"] += 1
        return self.counts

    def _settled(self) -> bool:
        running = self._cluster.running().values()
        heads = {controller.signed_head.partition("\n\n")[0] for controller in running}
        covered = not any(controller._signing.waiting_ms(2**60) for controller in running)
        return self._cluster.at_rest() and covered and len(heads) == 1 and heads != {""}

    def _judge_log(self, node_id: int) -> None:
        reader = LedgerReader(self._cluster.hosts[node_id].disk())
        audit = HeadAudit(reader.cluster_id, whole=True)
        leaves: list[bytes] = []
        before: tuple[int, int] | None = None
        """Size of the head before, and the leaf of its record."""
        for batch in reader.batches():
            for event in audit.read(batch):
                if event.problem:
                    self._fail(f"offset {event.offset}: {event.problem}", node_id)
                if isinstance(event, HeadEvent):
                    size = event.record.size
                    news = size - before[0] - (before[0] <= before[1] < size) if before else 1
                    if news < 1:
                        self._fail(f"offset {event.offset}: a head without news", node_id)
                    before = (size, len(leaves))
                    self._roots.setdefault(size, event.record.root)
                    self.counts["heads in the log"] += 1
                else:
                    self.counts["changes of keys in the log"] += 1
            leaves.append(sha256(b"\0" + batch.hash).digest())
        origin = origin_of(
            reader.cluster_id, self._cluster.controllers[node_id].image.quorum.generation
        )
        if audit.origin != origin:
            self._fail(f"the heads are of {audit.origin}", node_id)
        for size, root in self._roots.items():
            if root != _root(leaves[:size]):
                self._fail(f"a head of {size} batches is not that of the log", node_id)

    def _fail(self, what: str, node_id: int | None) -> None:
        who = "" if node_id is None else f"controller {node_id} "
        self._cluster.world.fail(f"I26: {who}{what}", node_id)


def _root(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it is written there."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return sha256(b"\1" + _root(leaves[:half]) + _root(leaves[half:])).digest()
