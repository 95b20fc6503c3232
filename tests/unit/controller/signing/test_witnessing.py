"""Controllers show their heads to witnesses; nothing that a witness does stops a write."""

from pathlib import Path

import pytest

from controller.signing.head_drop import (
    HeadDrop,
    batch_ranges,
    batches_name,
    head_name,
    head_sizes,
)
from controller.signing.http_witness import HttpWitness
from ledger.merkle.frontier import Frontier
from ledger.merkle.hashing import leaf_hash
from ledger.merkle.heads import TreeHead, believed_head, origin_of
from ledger.merkle.notes import SignedNote, SigningKey
from ledger.merkle.submissions import PATH
from logberg.processes.head_places import HeadFolder
from metadata.records import NoOpRecord
from runtime.http.requests import Reply
from tests.unit.controller.cluster import CLUSTER_ID, Cluster
from tests.unit.controller.signing.witness_server import WitnessServer

ORIGIN = origin_of(CLUSTER_ID, 1)


def seed_of(node_id: int) -> bytes:
    return bytes((node_id,)) * 32


KEYS = [SigningKey(ORIGIN, seed_of(number)).public for number in (1, 2, 3)]


@pytest.fixture
def server(tmp_path: Path) -> WitnessServer:
    return WitnessServer(tmp_path / "witness", ORIGIN, KEYS)


def witnessed_cluster(*servers: WitnessServer, **more) -> Cluster:
    def witnesses(node_id, clock):
        return [HttpWitness("http://w", one.key.public, one.of(clock), clock) for one in servers]

    cluster = Cluster(head_seed=seed_of, witnesses=witnesses, head_interval_s=1.0, **more)
    cluster.run(3)
    return cluster


def served(cluster: Cluster, node: int) -> SignedNote:
    status, body = cluster.ask("GET", "/checkpoint", node=node)
    assert status == 200, body
    return SignedNote.parse(body)


def metric(cluster: Cluster, node: int, name: str) -> float:
    _, body = cluster.ask("GET", "/metrics", node=node)
    (line,) = [line for line in body.decode().splitlines() if line.startswith(name)]
    return float(line.rpartition(" ")[2])


def size_of(cluster: Cluster) -> int:
    """How many batches the newest head covers: all but the record of that head itself."""
    *covered, last = cluster.batches()
    return len(covered) + (last.header.provenance.operation != "SignHead")


def test_every_controller_serves_the_cosignature_with_the_head(server: WitnessServer) -> None:
    cluster = witnessed_cluster(server)
    for _ in range(3):
        cluster.write(NoOpRecord())
        cluster.run(2)
        for node in (1, 2, 3):
            note = served(cluster, node)
            assert believed_head(note, ORIGIN, KEYS).size == size_of(cluster)
            assert note.signers([server.key.public]) == (server.key.public,)
            assert metric(cluster, node, "logberg_signed_head_unwitnessed_seconds") == 0
            assert metric(cluster, node, 'logberg_witness_head_batches{witness="w"}') == size_of(
                cluster
            )
    assert server.size == size_of(cluster)
    assert not cluster.events("witness_failed")


def test_a_witness_that_is_gone_stops_nothing_and_is_told_of(server: WitnessServer) -> None:
    cluster = witnessed_cluster(server, witness_window_s=20.0)
    before = server.size
    server.gone = True
    for _ in range(40):
        cluster.write(NoOpRecord())
        cluster.run(1)
    assert server.size == before
    assert metric(cluster, 1, "logberg_signed_head_batches") >= size_of(cluster) - 1
    assert 30 < metric(cluster, 1, "logberg_signed_head_unwitnessed_seconds") < 50
    assert metric(cluster, 1, 'logberg_witness_failing{witness="w"}') == 1
    told = cluster.events("head_unwitnessed")
    assert len(told) == 3, "each controller says it, once"
    assert len(cluster.events("witness_failed")) == 3
    server.gone = False
    cluster.run(70)
    assert server.size == size_of(cluster)
    assert metric(cluster, 1, "logberg_signed_head_unwitnessed_seconds") == 0
    assert len(cluster.events("head_witnessed_again")) == 3


@pytest.mark.parametrize(
    "answer",
    [
        Reply(200, b""),
        Reply(200, b"nonsense\n"),
        Reply(200, "— w AAAA\n".encode()),
        Reply(200, SigningKey("w", bytes((9,)) * 32, 4).sign("x").line.encode()),
        Reply(200, SigningKey("other", bytes((9,)) * 32, 4).sign("x").line.encode()),
        Reply(409, b"0\n"),
        Reply(409, b"999999999\n"),
        Reply(409, b"-1\n"),
        Reply(422, b"no\n"),
        Reply(403, b"no\n"),
        Reply(404, b"no\n"),
        Reply(500, bytes(100)),
        Reply(302, b""),
    ],
)
def test_a_witness_that_lies_is_named_and_nothing_else(
    server: WitnessServer, answer: Reply
) -> None:
    server.instead = lambda request, _: answer
    cluster = witnessed_cluster(server)
    cluster.write(NoOpRecord())
    cluster.run(5)
    note = served(cluster, 2)
    assert believed_head(note, ORIGIN, KEYS).size == size_of(cluster)
    assert len(note.signatures) == 3
    assert metric(cluster, 2, 'logberg_witness_failing{witness="w"}') == 1
    assert not cluster.events("witness_contradicts")
    assert server.asked < 200


def test_enough_witnesses_are_those_that_the_setting_says(tmp_path: Path) -> None:
    servers = [WitnessServer(tmp_path / name, ORIGIN, KEYS, name) for name in ("a", "b", "c")]
    cluster = witnessed_cluster(*servers, witnesses_needed=2)
    servers[0].gone = True
    cluster.write(NoOpRecord())
    cluster.run(3)
    assert metric(cluster, 1, "logberg_signed_head_unwitnessed_seconds") == 0
    servers[1].gone = True
    cluster.write(NoOpRecord())
    cluster.run(3)
    assert metric(cluster, 1, "logberg_signed_head_unwitnessed_seconds") > 0


@pytest.mark.parametrize("shows", [True, False])
def test_a_witness_that_has_another_history_is_evidence(
    tmp_path: Path, server: WitnessServer, shows: bool
) -> None:
    other = witnessed_cluster(server, seed=7)
    other.online(1)
    other.run(3)
    server.shows_heads = shows
    cluster = witnessed_cluster(server)
    for _ in range(20):
        cluster.write(NoOpRecord())
    # The first head was of fewer batches than the witness has; the next ones are of more.
    cluster.run(30)
    assert server.size == size_of(other)
    assert metric(cluster, 1, 'logberg_witness_failing{witness="w"}') == 1
    if not shows:
        assert any("refuses" in told["why"] for told in cluster.events("witness_failed"))
        return
    assert metric(cluster, 3, 'logberg_witness_contradicting{witness="w"}') == 1
    assert len(cluster.events("witness_contradicts")) == 3
    platter = cluster.platters[2].names
    theirs = SignedNote.parse(bytes(platter["evidence/heads-1.theirs"].content))
    ours = SignedNote.parse(bytes(platter["evidence/heads-1.ours"].content))
    assert believed_head(theirs, ORIGIN, KEYS).root != believed_head(ours, ORIGIN, KEYS).root
    # The writes go on.
    cluster.write(NoOpRecord())


@pytest.mark.parametrize("signers", [0, 1])
def test_a_witness_contradicts_nobody_without_a_majority_of_our_keys(
    server: WitnessServer, signers: int
) -> None:
    head = TreeHead(ORIGIN, 1, bytes(32))
    ours = [SigningKey(ORIGIN, seed_of(number)) for number in range(1, signers + 1)]
    signatures = (*(key.sign(head.text) for key in ours), server.key.sign(head.text, 1_800_000_000))
    lie = SignedNote(head.text, signatures).encode().encode()
    server.instead = lambda request, _: (
        Reply(422, b"no\n") if request.path == PATH else Reply(200, lie)
    )
    cluster = witnessed_cluster(server)
    cluster.write(NoOpRecord())
    cluster.run(5)
    assert not cluster.events("witness_contradicts")
    assert not [name for name in cluster.platters[2].names if name.startswith("evidence/")]
    assert metric(cluster, 3, 'logberg_witness_contradicting{witness="w"}') == 0
    assert any("too few of our keys" in told["why"] for told in cluster.events("witness_failed"))


def test_a_restarted_controller_shows_the_head_that_it_has(server: WitnessServer) -> None:
    cluster = witnessed_cluster(server)
    for node in (2, 3):
        cluster.kill(node)
        cluster.start(node)
    cluster.run(3)
    assert metric(cluster, 2, 'logberg_witness_head_batches{witness="w"}') == size_of(cluster)
    assert served(cluster, 3).signers([server.key.public])


# -- places ---------------------------------------------------------------------------------------


class SimulatedDrop:
    """`controller.signing.head_drop.Drop` on a simulated clock."""

    def __init__(self, folder: Path, clock) -> None:
        self.location = str(folder)
        self._place = HeadFolder(folder)
        self._clock = clock

    def run(self, work, on_done) -> None:
        def begin() -> None:
            try:
                result, failure = work(self._place), None
            except OSError as error:
                result, failure = None, error
            self._clock.call_later(0.01, lambda: on_done(result, failure))

        self._clock.call_later(0.01, begin)


def dropping_cluster(folder: Path, every_s: float = 1.0, **more) -> Cluster:
    def witnesses(node_id, clock):
        return [HeadDrop(SimulatedDrop(folder, clock), every_s, clock)]

    cluster = Cluster(head_seed=seed_of, witnesses=witnesses, head_interval_s=1.0, **more)
    cluster.run(3)
    return cluster


def hashes_in(folder: Path) -> bytes:
    """All hashes of batches in a place, whichever files have them."""
    found = b""
    for first, end in batch_ranges([path.name for path in folder.iterdir()]):
        data = (folder / f"{first:019d}-{end:019d}.batches").read_bytes()
        assert len(data) == 32 * (end - first)
        have = len(found) // 32
        assert first <= have
        found += data[32 * (have - first) :] if end > have else b""
    return found


def test_heads_and_hashes_lie_in_the_place(tmp_path: Path) -> None:
    folder = tmp_path / "drop"
    cluster = dropping_cluster(folder)
    for _ in range(300):
        cluster.write(NoOpRecord())
    cluster.run(5)
    sizes = head_sizes([path.name for path in folder.iterdir()])
    assert sizes[-1] == size_of(cluster)
    found = hashes_in(folder)
    for size in sizes:
        note = SignedNote.parse((folder / head_name(size)).read_bytes())
        frontier = Frontier()
        for at in range(size):
            frontier = frontier.append(leaf_hash(found[32 * at : 32 * at + 32]))
        assert believed_head(note, ORIGIN, KEYS) == TreeHead(ORIGIN, size, frontier.root())
    assert metric(cluster, 3, "logberg_signed_head_unwitnessed_seconds") == 0
    assert not [path for path in folder.iterdir() if path.suffix not in (".head", ".batches")]


def test_a_place_gets_heads_as_often_as_the_setting_says(tmp_path: Path) -> None:
    cluster = dropping_cluster(tmp_path / "drop", every_s=20.0)
    for _ in range(60):
        cluster.write(NoOpRecord())
        cluster.run(1)
    cluster.run(45)
    sizes = head_sizes([path.name for path in (tmp_path / "drop").iterdir()])
    assert sizes[-1] == size_of(cluster)
    assert len(sizes) <= 3 * 7


def test_a_place_with_another_history_is_left_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "drop"
    other = dropping_cluster(folder, seed=7)
    other.online(1)
    other.run(3)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    cluster = dropping_cluster(folder)
    for _ in range(20):
        cluster.write(NoOpRecord())
    cluster.run(5)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert len(cluster.events("witness_contradicts")) == 3
    cluster.write(NoOpRecord())


@pytest.mark.parametrize(
    ("name", "size", "says"),
    [
        (head_name(1), 1, "too few of our keys"),
        (head_name(10**18), 1, "holds a head of 1 batches"),
        (batches_name(0, 1), 0, "no head there proves it"),
    ],
    ids=["a head that one key signed", "a head under another name", "hashes"],
)
def test_who_can_write_to_a_place_contradicts_nobody(
    tmp_path: Path, name: str, size: int, says: str
) -> None:
    head = TreeHead(ORIGIN, size, bytes(32))
    note = SignedNote(head.text, (SigningKey(ORIGIN, seed_of(1)).sign(head.text),))
    folder = tmp_path / "drop"
    folder.mkdir()
    (folder / name).write_bytes(note.encode().encode() if size else bytes(32))
    cluster = dropping_cluster(folder)
    cluster.write(NoOpRecord())
    cluster.run(5)
    assert not cluster.events("witness_contradicts")
    assert any(says in told["why"] for told in cluster.events("witness_failed"))
    assert metric(cluster, 2, "logberg_signed_head_unwitnessed_seconds") > 0


def test_a_place_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    cluster = dropping_cluster(tmp_path / "not mounted" / "drop")
    cluster.write(NoOpRecord())
    cluster.run(3)
    assert "not there" in cluster.events("witness_failed")[0]["why"]
    (tmp_path / "not mounted").mkdir()
    cluster.run(20)
    assert head_sizes([path.name for path in (tmp_path / "not mounted" / "drop").iterdir()])


def test_what_lies_in_a_place_is_never_written_again(tmp_path: Path) -> None:
    place = HeadFolder(tmp_path / "drop")
    assert place.put_new("a", b"one")
    assert not place.put_new("a", b"two")
    assert place.read("a") == b"one"
    assert place.names() == ["a"]
