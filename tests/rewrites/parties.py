"""What each party finds of an attack, by the code that runs in production."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import structlog

from audit.places.replicas import open_all
from audit.questions.agreement import agree
from audit.questions.kept_heads import KeptHeadFiles, compare_with_heads
from broker_agent.states import BrokerState
from controller.signing.head_records import HeadRecords
from controller.signing.own_keys import OwnKeys
from controller.signing.signing import HeadSigning
from ledger.batch import Batch
from ledger.batch_tree import BatchTree
from ledger.merkle.heads import TreeHead, believed_head, origin_of
from ledger.merkle.notes import COSIGNATURE, SignedNote, SigningKey
from ledger.merkle.proofs import prove_consistency
from ledger.merkle.submissions import Submission
from logberg.witness.state import WitnessState
from logberg.witness.witness import Witness, WitnessedLog
from metadata.codec import decode_records
from metadata.image.metadata_image import EMPTY
from runtime.disk.real import RealDisk
from tests.oracles.transparency.drawn_trees import DrawnTree
from tests.rewrites.cases import COUNT, Attack
from tests.rewrites.forging import extended, forged_log, true_log, write_folder
from tests.unit.audit.nodes import InlineDisk
from tests.unit.broker_agent.fake_cluster import CLUSTER_ID, ONE, THREE, TWO, Log
from tests.unit.broker_agent.rig import Rig
from tests.unit.broker_agent.signed_heads import SEEDS, SignedHeads

ORIGIN = origin_of(CLUSTER_ID)
SIGNERS = {n: SigningKey(ORIGIN, SEEDS[n - 1]) for n in (1, 2, 3)}
KEYS = [SIGNERS[n].public for n in (1, 2, 3)]
MORE = 10
"""Batches that the attacker adds, so that the forged log is the longer one."""
CLAIMED = 2
"""The generation that an attacker claims."""


class Said(NamedTuple):
    """What a party says of an attack."""

    found: bool
    text: str


NOTHING = Said(found=False, text="nothing to see")


class Histories:
    """The true and the forged log of an attack, and their trees."""

    def __init__(self, attack: Attack) -> None:
        self.attack = attack
        self.true = true_log(COUNT)
        self.forged = forged_log(self.true, attack.at, MORE)
        self.true_tree = DrawnTree([batch.hash for batch in self.true])
        self.forged_tree = DrawnTree([batch.hash for batch in self.forged])
        self.offset = self.true[attack.at].header.base_offset

    def forged_note(self) -> bytes:
        """The head of the forged log, signed by all that the attacker can sign with."""
        generation = CLAIMED if self.attack.claims else 1
        return note_of(self.forged_tree, len(self.forged), self.attack.owned, generation)


def note_of(tree: DrawnTree, size: int, by: frozenset[int], generation: int = 1) -> bytes:
    head = TreeHead(origin_of(CLUSTER_ID, generation), size, tree.roots[size])
    signers = [SigningKey(head.origin, SEEDS[n - 1]) for n in sorted(by)]
    return SignedNote(head.text, tuple(one.sign(head.text) for one in signers)).encode().encode()


ALL = frozenset(SIGNERS)


def verifier(attack: Attack, histories: Histories, folder: Path) -> Said:
    """`audit compare` of the three folders, then `audit check-heads` of each with the place."""
    for n in ALL:
        log = histories.forged if n <= attack.rewritten else histories.true
        write_folder(folder / f"controller-{n}", log)
    replicas = open_all([str(folder)])
    said = []
    divergences = agree(replicas).comparison.divergences
    if divergences:
        offset = min(each.offset for each in divergences)
        said.append(f"compare: the folders differ from offset {offset} on")
    kept = KeptHeadFiles({})
    if attack.kept:
        note = note_of(histories.true_tree, attack.kept, ALL)
        hashes = b"".join(histories.true_tree.leaves[: attack.kept])
        kept = KeptHeadFiles({"kept": note}, hashes)
    public = [key.public for key in KEYS]
    wrong = {}
    for each in replicas:
        found = compare_with_heads(each.reader().batches(), CLUSTER_ID, kept, public)
        if found.heads and not found.ok:
            wrong[each.name] = found.first_wrong_offset
    if wrong:
        offsets = set(wrong.values())
        assert offsets == {histories.offset}, offsets
        said.append(
            f"check-heads: {_count(len(wrong))} not the log of the kept head, first wrong offset "
            f"{histories.offset}"
        )
    if attack.owned and not attack.rewritten:
        forged = KeptHeadFiles({"forged": histories.forged_note()})
        found = compare_with_heads(histories.true, CLUSTER_ID, forged, public)
        if found.heads and not found.ok:
            said.append("check-heads: the forged head is of no controller's log")
        elif not found.heads:
            said.append("check-heads: the forged head has too few signatures")
    return Said(bool(said), "; ".join(said)) if said else NOTHING


def _count(number: int) -> str:
    return {1: "one folder is", 2: "two folders are", 3: "three folders are"}[number]


def witness(attack: Attack, histories: Histories, folder: Path) -> Said:
    """A witness that a majority of the keys must convince."""
    disk = RealDisk(folder)
    disk.make_folder("")
    WitnessState.begin(disk)
    key = SigningKey("w", bytes(32), COSIGNATURE)
    state = WitnessState(disk)
    state.open(key.public)
    log = WitnessedLog(ORIGIN, tuple(KEYS), 2)
    asked = Witness(key, [log], state, lambda: 1_800_000_000)
    if attack.kept:
        first = note_of(histories.true_tree, attack.kept, ALL)
        assert asked.add(Submission(0, (), first).encode()).status == 200
    size = len(histories.forged)
    proof: tuple[bytes, ...] = ()
    if attack.kept:
        proof = prove_consistency(attack.kept, size, histories.forged_tree.subtree)
    judged = asked.add(Submission(attack.kept, proof, histories.forged_note()).encode())
    match judged.status:
        case 200:
            return Said(found=False, text="cosigns the forged head")
        case 422:
            assert (folder / judged.evidence).is_file()
            return Said(
                found=True, text=f"refuses (422), keeps both heads: before batch {attack.kept}"
            )
        case 404:
            return Said(found=True, text="refuses (404): it knows no such generation")
        case status:
            return Said(found=True, text=f"refuses ({status}): too few keys signed")


def agent(attack: Attack, histories: Histories) -> Said:
    """An agent that follows the controllers, and then the attacker."""
    log = _as_served(histories.true)
    rig = Rig(log=log, urls=(ONE, TWO, THREE), head_check_ms=5_000)
    heads = SignedHeads(rig, log)
    heads.size = attack.kept or None
    heads.answers = bool(attack.kept)
    rig.online()
    rig.run(3)
    assert (rig.agent.heads.newest is not None) == bool(attack.kept)
    forged = _as_served(histories.forged)
    for batch in log.batches[COUNT:]:
        # The broker registers again wherever it is.
        forged.append(*decode_records(batch.records))
    before = rig.agent.image.offset
    serves = len(attack.liars) > 1 or attack.leads
    heads.answers, heads.size = True, None
    if attack.claims:
        liar = SignedHeads(rig, forged, CLAIMED)
        liar.urls, rig.active.log = (ONE,), forged
        liar.signers = [SigningKey(liar.origin, SEEDS[n - 1]) for n in sorted(attack.owned)]
        rig.run(100)
        return _of_agent(rig, forged, before, serves=serves)
    heads.signers = [SIGNERS[n] for n in sorted(attack.owned)]
    if serves:
        rig.active.log = heads.log = forged
    elif attack.stolen:
        # Somebody between serves a forged head; the controllers' log is the true one.
        heads.log = forged
    else:
        heads.signers = list(SIGNERS.values())
    rig.run(100)
    return _of_agent(rig, forged, before, serves=serves)


def _of_agent(rig: Rig, forged: Log, before: int, *, serves: bool) -> Said:
    offline = rig.agent.state is not BrokerState.ONLINE
    if rig.agent.heads.contradiction:
        assert offline
        assert rig.agent.image.offset == before
        return Said(found=True, text="stays fenced, keeps both heads")
    if offline:
        assert rig.agent.image.offset == before
        return Said(found=True, text="stays fenced: no head that it believes extends its own")
    if rig.agent.image.offset == forged.end and serves:
        newest = rig.agent.heads.newest
        if newest is not None and newest.head.origin != ORIGIN:
            return Said(
                found=True,
                text="adopts the forged log, says so, and keeps the old head as evidence",
            )
        return Said(found=False, text="adopts the forged log")
    if rig.agent.heads.problem:
        return Said(found=True, text="serves on: the forged head has too few signatures")
    return Said(found=False, text="nothing to see: it follows the true log")


def _as_served(batches: list[Batch]) -> Log:
    log = Log()
    for batch in batches:
        log.take(batch)
    return log


def controllers(attack: Attack, histories: Histories, folder: Path) -> Said:
    """Three controllers that ask each other for a head, after the attack."""
    # Who claims another generation asks nobody of this one for signatures.
    forgers = frozenset[int]() if attack.claims else attack.liars
    logs = {n: histories.forged if n in forgers else histories.true for n in ALL}
    size = len(histories.forged)
    logs = {
        n: log if len(log) == size else extended(log, size - len(log)) for n, log in logs.items()
    }
    trio = SigningTrio(folder, logs)
    leader = 1
    trio.ask(leader)
    honest = [n for n in sorted(ALL) if n not in attack.liars]
    named = {n: sorted(trio.signings[n].differing) for n in honest}
    # Only an honest controller says something that counts.
    naming = [n for n in honest if named[n]]
    forged_root = histories.forged_tree.roots[size]
    served = {
        n for n in ALL if (newest := trio.signings[n].newest) and newest.head.root == forged_root
    }
    text = [f"{n} names {' and '.join(map(str, named[n]))}" for n in naming]
    if served:
        note = next(trio.signings[n].newest for n in served).note
        believed_head(SignedNote.parse(note.encode()), ORIGIN, KEYS)
        text.append("the forged head gets a majority")
    elif forgers:
        text.append("the forged head gets no majority")
    if not naming and not served:
        return Said(found=False, text="nothing to see: none of them signs it")
    return Said(bool(naming), "; ".join(text))


class SigningTrio:
    """Three controllers' parts that sign heads, and the way between them."""

    def __init__(self, folder: Path, logs: dict[int, list[Batch]]) -> None:
        self.signings: dict[int, HeadSigning] = {}
        for n, log in logs.items():
            disk: Any = InlineDisk(folder / f"signing-{n}")
            tree = BatchTree.open(disk, _fail)
            for batch in log:
                assert tree.append(batch)
            self.signings[n] = self._signing(n, disk, tree)

    def _signing(self, node: int, disk: Any, tree: BatchTree) -> HeadSigning:
        log = structlog.wrap_logger(None, processors=[structlog.testing.LogCapture()])
        image = msgspec.structs.replace(EMPTY, offset=tree.end_offset)
        # The heads stay out of the log here: what is asked is whose roots are the same.
        no_proposer: Any = SimpleNamespace(pending=None)
        return HeadSigning(
            _Clock(),
            disk,
            node,
            CLUSTER_ID,
            10.0,
            own_keys=OwnKeys(disk, node, CLUSTER_ID, SEEDS[node - 1], None, log),
            records=lambda on_written: HeadRecords(
                node, CLUSTER_ID, no_proposer, lambda: image, on_written, log
            ),
            tree=lambda: tree,
            image=lambda: image,
            voters=lambda: (1, 2, 3),
            tell=self._tells(node),
            on_unreadable=lambda: None,
            on_contradicted=lambda _why: None,
            log=log,
        )

    def ask(self, leader: int) -> None:
        self.signings[leader].begin()
        for signing in self.signings.values():
            signing.end()

    def _tells(self, sender: int) -> Callable[[bytes], None]:
        def tell(data: bytes) -> None:
            for n, signing in self.signings.items():
                if n != sender:
                    signing.on_told(sender, data)

        return tell


class _Clock:
    def monotonic(self) -> float:
        return 0.0

    def wall_ms(self) -> int:
        return 1_800_000_000_000

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> "_Clock":
        return self

    def call_soon(self, callback: Callable[[], None]) -> None:
        callback()

    def cancel(self) -> None:
        pass


def _fail(error: OSError) -> None:
    raise error
