"""Random tampering with a node's files is always found, and at its place.

A head of the log was written down before. The expected result follows from how the files were made,
not from the code under test.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.places.replicas import one_replica
from audit.questions.verification import LOG, VerificationProblem, verify_replica
from ledger.batch import parse
from metadata.image import image_to_records
from metadata.records import (
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    Record,
    ShutdownOffsetRecord,
)
from tests.histories import History, HistoryBatch
from tests.unit.audit.nodes import frames, rewritten, write_checkpoint, write_node
from tests.unit.image.replaying import registration

Frames = list[bytes]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    for name, seed in (("node", 6), ("other", 7)):
        write_node(
            folder / name,
            written=History(seed).batches(120),
            segment_bytes=8_192,
            checkpoint_every=150,
        )
    return folder


def flip(batches: Frames, number: int, dice: random.Random, foreign: Frames) -> None:
    data = bytearray(batches[number])
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    batches[number] = bytes(data)


def rewrite(batches: Frames, number: int, dice: random.Random, foreign: Frames) -> None:
    # A batch that does nothing is what it was when it is rewritten to do nothing.
    while (other := rewritten(parse(batches[number]))) == batches[number]:
        number = (number + 1) % len(batches)
    batches[number] = other


def drop(batches: Frames, number: int, dice: random.Random, foreign: Frames) -> None:
    del batches[number]


def swap(batches: Frames, number: int, dice: random.Random, foreign: Frames) -> None:
    other = (number + 1) % len(batches)
    batches[number], batches[other] = batches[other], batches[number]


def double(batches: Frames, number: int, dice: random.Random, foreign: Frames) -> None:
    batches.insert(number, batches[number])


def splice(batches: Frames, number: int, dice: random.Random, foreign: Frames) -> None:
    batches[number] = dice.choice(foreign)


def cut(batches: Frames, number: int, dice: random.Random, foreign: Frames) -> None:
    del batches[number:]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tamper", [flip, rewrite, drop, swap, double, splice, cut])
def test_what_is_done_to_batches(
    world: Path,
    tmp_path: Path,
    tamper: Callable[[Frames, int, random.Random, Frames], None],
    seed: int,
) -> None:
    dice = random.Random(seed)
    node = Path(shutil.copytree(world / "node", tmp_path / "node"))
    path = dice.choice(sorted((node / "log").glob("*.log")))
    header, before = frames(path)
    _, foreign = frames(dice.choice(sorted((world / "other" / "log").glob("*.log"))))
    after = list(before)
    tamper(after, dice.randrange(len(before)), dice, foreign)
    path.write_bytes(header + b"".join(after))
    # The first batch that isn't what it was; the chain tells of a rewritten one a batch later.
    spoilt = (n for n, batch in enumerate(before) if n >= len(after) or after[n] != batch)
    first = next(spoilt, len(before) - 1)
    spoiled = parse(before[first]).header
    for keep_going in (False, True):
        found = first_problem(node, world / "node", keep_going=keep_going)
        assert found.kind == LOG
        assert found.offset in (spoiled.base_offset, spoiled.end_offset)
        if found.offset == spoiled.end_offset:
            assert tamper in (rewrite, double)


def first_problem(node: Path, sound: Path, *, keep_going: bool) -> VerificationProblem:
    """What is found first, when the head of the log that was is known."""
    reader = one_replica(str(sound)).reader()
    head = reader.hash_at(reader.log_end)
    assert head is not None
    found = verify_replica(
        one_replica(str(node)), known={reader.log_end: head}, keep_going=keep_going, whole=True
    )
    assert not found.ok
    return found.problems[0]


@pytest.mark.parametrize("seed", range(8))
def test_what_is_done_to_whole_files(world: Path, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    node = Path(shutil.copytree(world / "node", tmp_path / "node"))
    folder = ("log", "checkpoints")[seed % 2]
    files = sorted((node / folder).iterdir())
    victim, other = dice.sample(files, 2)
    if folder == "log" and seed % 4 == 0:
        victim.unlink()
    else:
        shutil.copy(other, victim)
    found = first_problem(node, world / "node", keep_going=False)
    at = int(victim.name[:20])
    if folder == "log":
        assert found.kind == LOG
        assert found.offset == (0 if at == 0 else at)
    else:
        assert found.file == f"checkpoints/{victim.name}"


@pytest.mark.parametrize("seed", range(8))
def test_what_is_done_to_the_bytes_of_a_checkpoint(world: Path, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    node = Path(shutil.copytree(world / "node", tmp_path / "node"))
    victim = dice.choice(sorted((node / "checkpoints").iterdir()))
    data = bytearray(victim.read_bytes())
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    victim.write_bytes(data)
    found = first_problem(node, world / "node", keep_going=seed % 2 == 0)
    assert found.file == f"checkpoints/{victim.name}"


def leaving() -> list[HistoryBatch]:
    """Two brokers register, and with the last batch one begins a controlled shutdown."""
    leaves = BrokerRegistrationChangeRecord(1, 0, in_controlled_shutdown=1)
    return [
        HistoryBatch(0, 1, 1, (registration(1, broker_epoch=0), registration(2, broker_epoch=1))),
        HistoryBatch(2, 1, 2, (NoOpRecord(), leaves)),
    ]


@pytest.mark.parametrize("forge", ["missing", "twice", "elsewhere"])
def test_a_checkpoint_is_the_whole_snapshot_of_its_state(tmp_path: Path, forge: str) -> None:
    """Loading makes some of it good: the offset that a shutdown waits for, if it is the last one.

    So the state hash is right all the same, and the independent verifier alone found it.
    """
    node = tmp_path / "node"
    image = write_node(node, written=leaving(), checkpoint_every=4)[-1]
    assert verify_replica(one_replica(str(node))).proved == 1
    records: list[Record] = list(image_to_records(image))
    (at,) = (n for n, one in enumerate(records) if isinstance(one, ShutdownOffsetRecord))
    record = records[at] if forge == "twice" else records.pop(at)
    if forge != "missing":
        records.append(record)
    reader = one_replica(str(node)).reader()
    head = reader.hash_at(reader.log_end)
    assert head is not None
    write_checkpoint(node, image, head, records=records)
    found = verify_replica(one_replica(str(node)))
    assert "not the snapshot of its image" in found.problems[0].sentence
