"""Heads that a majority signs: who signs what, what is served, and what is refused."""

import base64
import struct
from typing import Any

import pytest

from controller.signing.messages import HeadSigned, read_told
from ledger.batch import parse
from ledger.batch_tree import BATCHES
from ledger.merkle.frontier import Frontier
from ledger.merkle.hashing import leaf_hash
from ledger.merkle.heads import HeadError, TreeHead, believed_head, origin_of
from ledger.merkle.notes import NoteKey, SignedNote, SigningKey
from ledger.merkle.proofs import verify_consistency, verify_inclusion
from ledger.merkle.tiles import fold, tiles_of
from metadata.records import NoOpRecord
from runtime.simulated.process import Death
from tests.unit.controller.cluster import CLUSTER_ID, Cluster

ORIGIN = origin_of(CLUSTER_ID, 1)


def seed_of(node_id: int) -> bytes:
    return bytes((node_id,)) * 32


def keys(*node_ids: int) -> list[NoteKey]:
    return [SigningKey(ORIGIN, seed_of(number)).public for number in node_ids or (1, 2, 3)]


def signing_cluster(**more) -> Cluster:
    cluster = Cluster(head_seed=seed_of, **more)
    cluster.run(11)
    return cluster


def head_of(cluster: Cluster, node: int, *known: NoteKey) -> TreeHead:
    status, body = cluster.ask("GET", "/checkpoint", node=node)
    assert status == 200, body
    return believed_head(SignedNote.parse(body), ORIGIN, known or keys())


def batches(cluster: Cluster, node: int = 1) -> list:
    return list(cluster.controllers[node].ledger.batches(0))


def covered(cluster: Cluster, node: int = 1) -> list:
    """The batches before the record of the newest head, which is the last batch."""
    *found, last = batches(cluster, node)
    assert last.header.provenance.operation == "SignHead"
    return found


def root_over(found: list) -> bytes:
    frontier = Frontier()
    for batch in found:
        frontier = frontier.append(leaf_hash(batch.hash))
    return frontier.root()


def test_every_controller_serves_a_head_that_all_have_signed() -> None:
    cluster = signing_cluster()
    cluster.write(NoOpRecord())
    cluster.run(11)
    heads = {head_of(cluster, node) for node in (1, 2, 3)}
    (head,) = heads
    found = covered(cluster)
    assert head == TreeHead(ORIGIN, len(found), root_over(found))
    note = SignedNote.parse(cluster.ask("GET", "/checkpoint", node=2)[1])
    assert len(note.signers(keys())) == 3


def test_without_news_no_head_is_made() -> None:
    cluster = signing_cluster()
    cluster.run(60)
    before = cluster.controllers[1]._signing.newest
    cluster.run(60)
    assert cluster.controllers[1]._signing.newest is before
    assert cluster.controllers[1]._signing.waiting_ms(10**15) == 0


def test_two_of_three_are_enough_and_one_is_not() -> None:
    cluster = signing_cluster()
    cluster.kill(3)
    cluster.write(NoOpRecord())
    cluster.run(11)
    head = head_of(cluster, 2)
    assert head.size == len(covered(cluster))
    with pytest.raises(HeadError, match="keys signed"):
        head_of(cluster, 2, *keys(3, 4, 5))
    cluster.shared.cut_off.add(2)
    cluster.run(1)
    before = cluster.controllers[1]._signing.newest
    assert before.head == head


def test_a_new_leader_asks_for_heads() -> None:
    cluster = signing_cluster()
    cluster.lead(2)
    cluster.write(NoOpRecord())
    cluster.run(11)
    assert head_of(cluster, 3).size == len(covered(cluster, 2))


@pytest.mark.parametrize("how", [Death.KILLED, Death.POWER])
def test_a_restart_keeps_the_head_and_goes_on(how: Death) -> None:
    cluster = signing_cluster()
    for _ in range(300):
        cluster.write(NoOpRecord())
    cluster.run(11)
    head = head_of(cluster, 3)
    assert head.size > 256
    cluster.kill(3, how)
    cluster.start(3)
    cluster.run(0.5)
    assert head_of(cluster, 3) == head
    cluster.write(NoOpRecord())
    cluster.run(11)
    assert head_of(cluster, 3).size > head.size
    assert not cluster.events("head_not_read")


def test_tiles_give_the_root_of_the_head() -> None:
    cluster = signing_cluster()
    for _ in range(300):
        cluster.write(NoOpRecord())
    cluster.run(11)
    head = head_of(cluster, 2)
    leaves = []
    for tile in tiles_of(head.size):
        status, data = cluster.ask("GET", f"/{tile.path}", node=2)
        assert status == 200
        assert len(data) == 32 * tile.width
        if tile.level == 0:
            leaves += [data[at : at + 32] for at in range(0, len(data), 32)]
            status, bundle = cluster.ask("GET", f"/{tile._replace(of_entries=True).path}", node=2)
            entries = [bundle[at + 2 : at + 34] for at in range(0, len(bundle), 34)]
            assert [leaf_hash(entry) for entry in entries] == leaves[-tile.width :]
    frontier = Frontier()
    for leaf in leaves:
        frontier = frontier.append(leaf)
    assert frontier.root() == head.root


@pytest.mark.parametrize(
    "path", ["/tile/0/001", "/tile/0/000.p/0", "/tile/9/000", "/tile/0/", "/tile/", "/tile/a/b/c"]
)
def test_what_is_no_tile_is_not_found(path: str) -> None:
    assert signing_cluster().ask("GET", path, node=2)[0] == 404


def test_a_batch_proof_shows_a_batch_under_the_head() -> None:
    cluster = signing_cluster()
    older = head_of(cluster, 1)
    cluster.write(NoOpRecord())
    cluster.run(11)
    for batch in covered(cluster):
        offset = batch.header.end_offset - 1
        status, said = cluster.ask(
            "GET", f"/v1/proofs/{offset}", node=3, query={"olderSize": str(older.size)}
        )
        assert status == 200, said
        head = believed_head(SignedNote.parse(said["head"].encode()), ORIGIN, keys())
        proved = parse(base64.b64decode(said["batch"]))
        assert proved == batch
        proof = [base64.b64decode(one) for one in said["inclusion"]]
        verify_inclusion(leaf_hash(proved.hash), said["leafIndex"], head.size, head.root, proof)
        grown = [base64.b64decode(one) for one in said["consistency"]]
        verify_consistency(older.size, older.root, head.size, head.root, grown)


def test_what_no_batch_proof_can_show() -> None:
    cluster = signing_cluster()
    end = cluster.leader.ledger.log_end
    assert cluster.ask("GET", f"/v1/proofs/{end}")[1]["code"] == "OFFSET_OUT_OF_RANGE"
    assert cluster.ask("GET", "/v1/proofs/x")[0] == 400
    query = {"olderSize": "1000"}
    assert cluster.ask("GET", "/v1/proofs/0", query=query)[1]["code"] == "INVALID_REQUEST"
    cluster.write(NoOpRecord())
    assert cluster.ask("GET", f"/v1/proofs/{end}")[1]["code"] == "OFFSET_NOT_AVAILABLE"


def test_a_controller_without_a_key_signs_nothing() -> None:
    cluster = Cluster()
    cluster.run(20)
    for path in ("/checkpoint", "/v1/proofs/0", "/tile/0/000.p/1"):
        assert cluster.ask("GET", path)[0] == 404
    assert not cluster.controllers[1]._storage.tree


def test_a_damaged_tree_is_made_again_and_contradicts_nothing() -> None:
    """The tree's files prove nothing: the ledger decides (they are not even synced)."""
    cluster = signing_cluster()
    for _ in range(300):
        cluster.write(NoOpRecord())
    cluster.run(11)
    cluster.kill(3)
    names = cluster.platters[3].names
    # Both files agree with each other, and not with the ledger: a whole tile of another log.
    tile = b"".join(struct.pack(">q32s", at + 1, bytes(32)) for at in range(256))
    root = fold(leaf_hash(bytes(32)) * 256)
    names["tree/batches"].content[: len(tile)] = tile
    names["tree/tiles"].content[:32] = root
    cluster.start(3)
    cluster.run(5)
    cluster.write(NoOpRecord())
    cluster.run(11)
    assert not cluster.controllers[3]._signing.contradiction
    assert head_of(cluster, 3).size == len(covered(cluster))
    assert not cluster.events("head_contradicted")


def test_a_log_that_contradicts_what_this_node_signed_stops_its_signing() -> None:
    cluster = signing_cluster()
    node = cluster.controllers[3]
    size = node._signing.newest.head.size
    forged = TreeHead(ORIGIN, size, bytes(32))
    note = SignedNote(forged.text, (SigningKey(ORIGIN, seed_of(3)).sign(forged.text),))
    cluster.kill(3)
    cluster.start(3)
    cluster.shared.disks[3].replace("tree/checkpoint", note.encode().encode())
    cluster.write(NoOpRecord())
    cluster.run(11)
    assert "history was changed" in cluster.controllers[3]._signing.contradiction
    assert cluster.events("head_contradicted")
    assert cluster.ask("GET", "/checkpoint", node=3)[0] == 503
    # It serves nothing of that log, and says why.
    status, said = cluster.ask("GET", "/v1/topics", node=3)
    assert status == 503
    assert "history was changed" in said["message"]
    assert cluster.ask("GET", "/health/ready", node=3)[0] == 503
    # The evidence stays, and the others go on.
    assert cluster.shared.disks[3].read("tree/checkpoint") == note.encode().encode()
    assert len(SignedNote.parse(cluster.ask("GET", "/checkpoint", node=1)[1]).signers(keys())) == 2


def test_a_log_that_is_shorter_than_what_this_node_signed_is_not_signed() -> None:
    cluster = signing_cluster()
    longer = TreeHead(ORIGIN, 10_000, bytes(32))
    note = SignedNote(longer.text, (SigningKey(ORIGIN, seed_of(3)).sign(longer.text),))
    cluster.kill(3)
    cluster.start(3)
    cluster.shared.disks[3].replace("tree/checkpoint", note.encode().encode())
    cluster.write(NoOpRecord())
    cluster.run(11)
    assert cluster.ask("GET", "/checkpoint", node=3)[0] == 404
    assert len(SignedNote.parse(cluster.ask("GET", "/checkpoint", node=1)[1]).signers(keys())) == 2


def test_a_peer_that_signs_another_root_is_named() -> None:
    cluster = signing_cluster()
    signing = cluster.controllers[1]._signing
    size = signing.newest.head.size
    key = SigningKey(ORIGIN, seed_of(3))
    signature = key.sign(TreeHead(ORIGIN, size, bytes(32)).text).signature
    forged = HeadSigned(False, size, bytes(32), key.public.public, signature)
    signing.on_told(3, forged.encode())
    assert signing.differing == {3: size}
    assert len(cluster.events("head_differs")) == 1
    signing.on_told(3, forged.encode())
    assert len(cluster.events("head_differs")) == 1


def test_a_stranger_and_a_wrong_signature_count_for_nobody() -> None:
    cluster = signing_cluster()
    cluster.write(NoOpRecord())
    signing = cluster.controllers[1]._signing
    signing._ask()
    own = signing._own
    before = signing.newest
    assert own.size > before.head.size
    key = SigningKey(ORIGIN, seed_of(9))
    signature = key.sign(own.text).signature
    signing.on_told(9, HeadSigned(False, own.size, own.root, key.public.public, signature).encode())
    signing.on_told(2, HeadSigned(False, own.size, own.root, key.public.public, bytes(64)).encode())
    assert signing.newest is before


def test_a_damaged_tree_is_made_again_and_proves_nothing_wrong() -> None:
    cluster = signing_cluster()
    for _ in range(300):
        cluster.write(NoOpRecord())
    cluster.run(11)
    disk = cluster.shared.disks[1]
    data = disk.read(BATCHES)
    disk.replace(BATCHES, data[:8] + bytes((data[8] ^ 1,)) + data[9:])
    assert cluster.ask("GET", "/v1/proofs/0", node=1)[1]["code"] == "STORAGE_ERROR"
    cluster.run(2)
    assert cluster.ask("GET", "/v1/proofs/0", node=1)[0] == 200


SIGNED = HeadSigned(True, 7, b"r" * 32, b"p" * 32, b"s" * 64)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x04", SIGNED.encode()[:-1], b"\x05" + SIGNED.encode()[1:], b"\x04" + bytes([2]) * 137],
)
def test_what_cannot_be_read_is_passed_over(data: bytes) -> None:
    assert read_told(data) is None


def test_messages_are_read_as_they_were_written() -> None:
    assert read_told(SIGNED.encode()) == SIGNED
    assert len(SIGNED.encode()) <= 511


def test_a_signature_that_was_lost_is_asked_for_again() -> None:
    cluster = Cluster(head_seed=seed_of, head_interval_s=1.0)
    cluster.run(2)
    cluster.shared.cut_off |= {2, 3}
    cluster.run(0.5)
    signing: Any = cluster.controllers[1]._signing
    before = signing.newest
    signing._kept.newest = None
    signing._signatures.clear()
    cluster.run(2)
    assert signing.newest is None
    cluster.shared.cut_off.clear()
    cluster.run(2)
    assert head_of(cluster, 1).size >= before.head.size
