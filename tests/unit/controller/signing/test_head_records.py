"""Keys and heads in the log: who writes them, how a key changes, and what is not believed."""

from typing import Any

import msgspec
import pytest

from controller.signing.messages import HeadSigned, KeyRotation, read_told
from controller.signing.own_keys import FILE, NEXT_FILE, PUBLIC_FILE
from ledger.merkle import notes
from ledger.merkle.heads import TreeHead, rotation_text
from ledger.merkle.notes import NoteKey, SignedNote, SigningKey
from metadata.features import LOGBERG_VERSION
from metadata.records import (
    HeadKeyCause,
    HeadKeyRecord,
    HeadSignature,
    NoOpRecord,
    SignedHeadRecord,
)
from runtime.simulated.process import Death
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.signing.test_signing import ORIGIN, covered, root_over, seed_of

REASON = {"x-logberg-reason": "its disk is lost"}


def drawn(node_id: int) -> Any:
    """What draws another key for a node: 100 + its id, then 101 + …"""
    numbers = iter(range(100 + node_id, 200))
    return lambda: bytes((next(numbers),)) * 32


def make(**more: Any) -> Cluster:
    cluster = Cluster(
        **{"head_seed": seed_of, "head_interval_s": 1.0, "new_head_seed": drawn, **more}
    )
    cluster.run(5)
    return cluster


def public(node_id: int) -> bytes:
    return SigningKey(ORIGIN, seed_of(node_id)).public.public


def key_records(cluster: Cluster) -> list[HeadKeyRecord]:
    return [each for each in cluster.records() if isinstance(each, HeadKeyRecord)]


def heads(cluster: Cluster) -> list[SignedHeadRecord]:
    return [each for each in cluster.records() if isinstance(each, SignedHeadRecord)]


def change(cluster: Cluster, body: dict[str, Any], **more: Any) -> tuple[int, Any]:
    return cluster.ask("POST", "/v1/quorum/head-keys", body, **more)


def test_each_voter_has_its_key_in_the_log_and_the_head_is_there() -> None:
    cluster = make()
    keys = {each.controller_id: each for each in key_records(cluster)}
    assert {number: key.public_key for number, key in keys.items()} == {
        number: public(number) for number in (1, 2, 3)
    }
    assert {key.cause for key in keys.values()} == {HeadKeyCause.REGISTERED}
    newest = heads(cluster)[-1]
    found = covered(cluster)
    assert (newest.origin, newest.size) == (ORIGIN, len(found))
    assert newest.root == root_over(found)
    assert len(newest.signatures) >= 2
    head = TreeHead(newest.origin, newest.size, newest.root)
    for each in newest.signatures:
        assert NoteKey(ORIGIN, each.public_key).verifies(head.text, each.signature)
    whose = {
        batch.header.provenance.principal
        for batch in cluster.batches()
        if batch.header.provenance.operation == "RegisterHeadKey"
    }
    assert whose == {"Controller:1", "Controller:2", "Controller:3"}
    cluster.assert_equal()


def test_an_idle_cluster_writes_one_head_and_no_more() -> None:
    cluster = make()
    end = cluster.leader.ledger.log_end
    cluster.run(60)
    assert cluster.leader.ledger.log_end == end
    cluster.write(NoOpRecord())
    cluster.run(60)
    assert cluster.leader.ledger.log_end == end + 2
    for controller in cluster.controllers.values():
        assert controller._signing.waiting_ms(10**15) == 0
    cluster.lead(2)
    cluster.run(60)
    # BeginEpoch is news.
    assert cluster.leader.ledger.log_end == end + 4


def test_below_the_level_nothing_is_written_and_heads_are_signed_as_before() -> None:
    cluster = make(initial_features={LOGBERG_VERSION: 5})
    assert not key_records(cluster)
    assert not heads(cluster)
    assert cluster.ask("GET", "/checkpoint", node=2)[0] == 200
    assert change(cluster, {"nodeId": 1})[1]["code"] == "UNSUPPORTED_VERSION"
    body = {"updates": [{"feature": LOGBERG_VERSION, "maxVersionLevel": 6}]}
    status, said = cluster.ask("POST", "/v1/features", body)
    assert status == 200, said
    cluster.run(5)
    assert len(key_records(cluster)) == 3
    assert heads(cluster)


def test_a_key_rotates_by_a_request_and_both_keys_have_signed() -> None:
    cluster = make()
    status, said = change(cluster, {"nodeId": 3})
    assert (status, said["rotates"], said["publicKey"]) == (
        200,
        True,
        NoteKey(ORIGIN, public(3)).text,
    )
    cluster.run(5)
    asked, done = key_records(cluster)[-2:]
    assert (asked.cause, asked.public_key) == (HeadKeyCause.ROTATING, public(3))
    new = SigningKey(ORIGIN, bytes((103,)) * 32)
    assert (done.cause, done.public_key) == (HeadKeyCause.ROTATED, new.public.public)
    text = rotation_text(ORIGIN, 3, public(3), new.public.public)
    assert NoteKey(ORIGIN, public(3)).verifies(text, done.old_signature)
    assert new.public.verifies(text, done.new_signature)
    disk = cluster.shared.disks[3]
    assert disk.read(FILE) == b"67" * 32 + b"\n"
    assert disk.read(PUBLIC_FILE).decode() == new.public.text + "\n"
    assert not disk.exists(NEXT_FILE)
    cluster.write(NoOpRecord())
    cluster.run(3)
    note = SignedNote.parse(cluster.ask("GET", "/checkpoint", node=1)[1])
    assert note.signers([new.public])
    status, listed = cluster.ask("GET", "/v1/quorum/head-keys")
    assert [each["state"] for each in listed["keys"]] == ["registered", "registered", "rotated"]
    assert listed["headSize"] == heads(cluster)[-1].size
    # Once more, and the leader's own.
    for node in (3, 1):
        assert change(cluster, {"nodeId": node})[0] == 200
        cluster.run(5)
        assert key_records(cluster)[-1].cause == HeadKeyCause.ROTATED


@pytest.mark.parametrize("how", [Death.KILLED, Death.POWER])
def test_a_crash_in_the_middle_of_a_rotation_loses_no_key(how: Death) -> None:
    for delay in (0.001, 0.05, 0.3, 0.6, 1.0):
        cluster = make()
        assert change(cluster, {"nodeId": 3})[0] == 200
        cluster.run(delay)
        cluster.kill(3, how)
        cluster.run(1)
        cluster.start(3)
        cluster.run(8)
        cluster.write(NoOpRecord())
        cluster.run(3)
        assert not cluster.controllers[3]._signing.problem, delay
        named = cluster.image.heads.keys.get(3)
        assert named.cause == HeadKeyCause.ROTATED, delay
        note = SignedNote.parse(cluster.ask("GET", "/checkpoint", node=1)[1])
        assert note.signers([NoteKey(ORIGIN, named.public_key)]), delay


def told(cluster: Cluster, sender: int, message: HeadSigned | KeyRotation) -> None:
    cluster.leader.on_digest(sender, message.encode(), True)
    cluster.run(2)


def test_nobody_rotates_a_key_without_the_key_before() -> None:
    cluster = make()
    thief = SigningKey(ORIGIN, seed_of(66))
    text = rotation_text(ORIGIN, 3, public(3), thief.public.public)
    right = SigningKey(ORIGIN, seed_of(3)).sign(text).signature
    own = thief.sign(text).signature
    # Even both signatures change nothing unless somebody asked.
    told(cluster, 3, KeyRotation(thief.public.public, right, own))
    assert len(key_records(cluster)) == 3
    cluster.shared.cut_off.add(3)
    assert change(cluster, {"nodeId": 3})[0] == 200
    for old, new in ((own, own), (bytes(64), own), (right, bytes(64)), (right, right)):
        told(cluster, 3, KeyRotation(thief.public.public, old, new))
    assert key_records(cluster)[-1].cause == HeadKeyCause.ROTATING
    told(cluster, 2, KeyRotation(thief.public.public, right, own))
    assert key_records(cluster)[-1].cause == HeadKeyCause.ROTATING


def test_a_lost_key_is_replaced_by_an_operator_who_says_why() -> None:
    cluster = make()
    cluster.kill(3)
    cluster.config["head_seed"] = lambda node: seed_of(33 if node == 3 else node)
    cluster.start(3)
    cluster.write(NoOpRecord())
    cluster.run(3)
    assert "names another for it" in cluster.controllers[3]._signing.problem
    assert cluster.events("head_key_not_in_log")
    line = NoteKey(ORIGIN, public(33)).text
    status, said = change(cluster, {"nodeId": 3, "publicKey": line})
    assert (status, said["code"]) == (400, "INVALID_REQUEST")
    for wrong in ("x", NoteKey(ORIGIN, public(1)).text, NoteKey(ORIGIN, public(9), 4).text):
        assert change(cluster, {"nodeId": 3, "publicKey": wrong}, headers=REASON)[0] == 400
    assert change(cluster, {"nodeId": 9}, headers=REASON)[0] == 400
    status, said = change(cluster, {"nodeId": 3, "publicKey": line}, headers=REASON)
    assert (status, said["rotates"]) == (200, False)
    (batch,) = [b for b in cluster.batches() if b.header.provenance.operation == "ChangeHeadKey"]
    assert (batch.header.provenance.principal, batch.header.provenance.reason) == (
        "User:alice",
        "its disk is lost",
    )
    cluster.run(3)
    assert not cluster.controllers[3]._signing.problem
    note = SignedNote.parse(cluster.ask("GET", "/checkpoint", node=1)[1])
    assert note.signers([NoteKey(ORIGIN, public(33))])


def test_a_strange_key_counts_for_nobody_and_is_named() -> None:
    cluster = make()
    cluster.shared.cut_off.add(3)
    cluster.write(NoOpRecord())
    signing: Any = cluster.leader._signing
    signing._ask()
    own = signing._own
    strange = SigningKey(ORIGIN, seed_of(66))
    signature = strange.sign(own.text).signature
    told(cluster, 3, HeadSigned(False, own.size, own.root, strange.public.public, signature))
    assert signing.uncounted == {3: strange.public.public}
    assert cluster.events("head_key_differs")
    assert all(
        each.public_key != strange.public.public for h in heads(cluster) for each in h.signatures
    )


def test_one_key_counts_for_one_voter_only() -> None:
    cluster = make(head_seed=lambda node_id: seed_of(min(node_id, 2)))
    named = {each.controller_id: each.public_key for each in key_records(cluster)}
    assert len(named) == len(set(named.values())) == 2
    assert cluster.image.heads.newest.size > 0


def with_id_of(taken: bytes, first: int) -> int:
    """Return the first number from `first` on whose key has the id of a taken key."""
    wanted = NoteKey(ORIGIN, taken).id
    found = (
        n for n in range(first, 2**16) if NoteKey(ORIGIN, long_key(n).public.public).id == wanted
    )
    return next(found)


def long_key(number: int) -> SigningKey:
    return SigningKey(ORIGIN, number.to_bytes(32, "big"))


@pytest.fixture
def short_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of one byte: two keys with one id are found at once, and not after 2^32 tries."""
    monkeypatch.setattr(notes, "_ID_BYTES", 1)


@pytest.mark.usefixtures("short_ids")
@pytest.mark.parametrize("owner", [1, 3], ids=["of another controller", "of the key before"])
def test_a_key_with_an_id_that_is_taken_is_not_rotated_to(owner: int) -> None:
    """Attack: a thief of one head key tries keys until one has the id of another.

    Whoever checks a note knows a key by its name and id. So every note under both keys would be
    refused, though each signature is right.
    """
    cluster = make()
    ground = long_key(with_id_of(public(owner), 1_000))
    cluster.shared.cut_off.add(3)
    assert change(cluster, {"nodeId": 3})[0] == 200
    text = rotation_text(ORIGIN, 3, public(3), ground.public.public)
    old = SigningKey(ORIGIN, seed_of(3)).sign(text).signature
    told(cluster, 3, KeyRotation(ground.public.public, old, ground.sign(text).signature))
    assert key_records(cluster)[-1].cause == HeadKeyCause.ROTATING
    free = long_key(5_000)
    text = rotation_text(ORIGIN, 3, public(3), free.public.public)
    old = SigningKey(ORIGIN, seed_of(3)).sign(text).signature
    told(cluster, 3, KeyRotation(free.public.public, old, free.sign(text).signature))
    assert key_records(cluster)[-1].public_key == free.public.public


@pytest.mark.usefixtures("short_ids")
def test_nobody_registers_a_key_with_an_id_that_is_taken() -> None:
    number = with_id_of(public(1), 1_000)
    seeds = {3: number.to_bytes(32, "big")}
    cluster = make(head_seed=lambda node_id: seeds.get(node_id, seed_of(node_id)))
    assert [each.controller_id for each in key_records(cluster)] == [1, 2]
    note = SignedNote.parse(cluster.ask("GET", "/checkpoint")[1])
    assert len(note.signers([NoteKey(ORIGIN, public(node_id)) for node_id in (1, 2)])) == 2


@pytest.mark.usefixtures("short_ids")
@pytest.mark.parametrize("owner", [1, 3], ids=["of another controller", "of the key before"])
def test_an_operator_who_names_a_key_with_an_id_that_is_taken_hears_whose_it_is(owner: int) -> None:
    cluster = make()
    line = long_key(with_id_of(public(owner), 1_000)).public.text
    status, said = change(cluster, {"nodeId": 3, "publicKey": line}, headers=REASON)
    assert (status, said["code"]) == (400, "INVALID_REQUEST")
    assert f"controller {owner} has a key with the same id" in said["message"]
    # The same key once more is no change.
    line = NoteKey(ORIGIN, public(3)).text
    assert change(cluster, {"nodeId": 3, "publicKey": line}, headers=REASON)[0] == 200


def test_keys_of_those_who_vote_no_more_are_removed() -> None:
    cluster = make()
    voters = [voter for voter in cluster.leader.quorum.voters() if voter.node_id != 3]
    key = cluster.image.heads.keys.get(3)
    cluster.write(msgspec.structs.replace(key, directory_id=b"another folder 1"))
    cluster.write(NoOpRecord())
    cluster.run(3)
    causes = [each.cause for each in key_records(cluster) if each.controller_id == 3]
    # It was gone, and registered itself anew.
    assert causes[-2:] == [HeadKeyCause.REMOVED, HeadKeyCause.REGISTERED]
    assert cluster.image.heads.keys.get(3).directory_id == key.directory_id
    assert voters


def test_a_head_in_the_log_that_no_majority_signed_is_not_believed() -> None:
    cluster = make()
    before = cluster.controllers[2].signed_head
    size = cluster.image.heads.newest.size + 1
    key = SigningKey(ORIGIN, seed_of(1))
    head = TreeHead(ORIGIN, size, bytes(32))
    signed = HeadSignature(1, key.public.public, key.sign(head.text).signature)
    cluster.write(SignedHeadRecord(ORIGIN, size, bytes(32), (signed, signed)))
    assert cluster.events("logged_head_not_believed")
    assert not cluster.events("head_contradicted")
    assert cluster.controllers[2].signed_head.split("\n")[1] == before.split("\n")[1]


def test_a_controller_whose_history_a_majority_contradicts_signs_no_more() -> None:
    cluster = make()
    node: Any = cluster.controllers[3]._signing
    tree_of = node._tree

    class Rewritten:
        """The node's tree, with other roots."""

        believed, first = True, 0

        def __init__(self, tree: Any) -> None:
            self.size: int = tree.size
            self.end_offset: int = tree.end_offset

        def root(self, size: int) -> bytes:
            return bytes((size % 256,)) * 32

    def rewritten() -> Rewritten | None:
        # The node makes its tree again before it believes that its history was changed.
        tree = tree_of()
        return None if tree is None else Rewritten(tree)

    node._tree = rewritten
    cluster.write(NoOpRecord())
    cluster.run(3)
    assert "history was changed" in node.contradiction
    last = node._own
    cluster.write(NoOpRecord())
    cluster.run(3)
    assert node._own is last
    assert cluster.ask("GET", "/checkpoint", node=3)[0] == 503
    assert cluster.controllers[1].signed_head


def test_messages_of_rotations_are_read_as_they_were_written() -> None:
    message = KeyRotation(b"p" * 32, b"o" * 64, b"n" * 64)
    assert read_told(message.encode()) == message
    assert len(message.encode()) <= 511
    assert read_told(message.encode()[:-1]) is None
