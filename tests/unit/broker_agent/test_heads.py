"""Agents keep the newest signed head, and don't adopt a log that contradicts it."""

from typing import Any

import msgspec
import pytest

from broker_agent.config import NewGenerations
from broker_agent.head_file import HEADS_FILE, HeadFileError, generation_of
from broker_agent.states import BrokerState
from ledger.merkle.heads import TreeHead
from ledger.merkle.notes import SignedNote, SigningKey
from metadata.codec import decode_records
from metadata.records import NoOpRecord, TopicRecord
from tests.unit.broker_agent.fake_cluster import CLUSTER_ID, ONE, THREE, TWO, Log, topic
from tests.unit.broker_agent.rig import Rig
from tests.unit.broker_agent.signed_heads import SEEDS, SignedHeads

CHECK_MS = 5_000


def served_rig(count: int = 5, **settings: Any) -> tuple[Rig, SignedHeads]:
    log = Log()
    log.fill(count)
    rig = Rig(log=log, **{"head_check_ms": CHECK_MS, **settings})
    heads = SignedHeads(rig, rig.log)
    return rig, heads


def kept(rig: Rig) -> TreeHead | None:
    newest = rig.agent.heads.newest
    return None if newest is None else newest.head


def forged_log(rig: Rig, same: int, more: int) -> Log:
    """A log whose first `same` batches are the true ones; then comes a forged one.

    What registered the broker is in it, as it would be once the broker has registered again.
    """
    forged = Log()
    for batch in rig.log.batches[:same]:
        forged.take(batch)
    forged.epoch = rig.log.epoch
    forged.append(topic(100))
    for batch in rig.log.batches[same:]:
        records = decode_records(batch.records)
        if not all(isinstance(record, NoOpRecord | TopicRecord) for record in records):
            forged.append(*records)
    forged.fill(more - 1)
    return forged


def swap(rig: Rig, heads: SignedHeads, forged: Log) -> None:
    """From now on all controllers have the other log, and sign it with their keys."""
    rig.active.log = heads.log = forged


def evidence(rig: Rig) -> dict[str, bytes]:
    found = rig.host.platter.names
    return {
        name.partition("/")[2]: bytes(inode.content)
        for name, inode in found.items()
        if name.startswith("evidence/heads-")
    }


def test_an_agent_pins_the_keys_and_keeps_the_newest_head() -> None:
    rig, heads = served_rig()
    rig.online()
    rig.run(3)
    first = kept(rig)
    assert first is not None
    assert first.size == len(rig.log.batches)
    for _ in range(300):
        rig.active.commit(NoOpRecord())
    rig.run(CHECK_MS / 1000 + 1)
    newest = kept(rig)
    assert newest is not None
    assert newest.size == len(rig.log.batches) > first.size
    assert newest.root == heads.tree().roots[newest.size]
    assert any(path.startswith(("/tile/1/", "/tile/0/")) for path in heads.asked)
    saved = msgspec.json.decode(rig.disk.read(HEADS_FILE))
    assert len(saved["keys"]) == 3
    assert rig.agent.state is BrokerState.ONLINE


def test_without_the_setting_nobody_is_asked() -> None:
    rig, heads = served_rig(head_check_ms=0)
    rig.online()
    rig.run(30)
    assert heads.asked == []
    assert not rig.disk.exists(HEADS_FILE)


@pytest.mark.parametrize("same", [0, 2, 4])
@pytest.mark.parametrize("more", [1, 8, 300])
def test_a_forged_log_is_not_adopted(same: int, more: int) -> None:
    rig, heads = served_rig()
    rig.online()
    rig.run(3)
    head = kept(rig)
    assert head is not None
    swap(rig, heads, forged_log(rig, same, more))
    rig.run(100)
    assert rig.agent.state is BrokerState.FENCED
    assert not rig.agent.may_serve()
    assert rig.agent.image.offset == rig.log.end, "the forged records were never applied"
    assert "forged" in rig.agent.catching_up.differs or "shorter" in rig.agent.catching_up.differs
    assert rig.agent.heads.contradiction
    assert kept(rig) == head
    files = evidence(rig)
    ours = next(data for name, data in files.items() if name.endswith(".kept"))
    theirs = next(data for name, data in files.items() if name.endswith(".theirs"))
    for data in (ours, theirs):
        note = SignedNote.parse(data)
        assert len(note.signers([SigningKey(heads.origin, s).public for s in SEEDS])) == 3
    assert TreeHead.parse(SignedNote.parse(ours).text) == head


def test_a_restart_with_a_lost_image_does_not_adopt_the_forgery_either() -> None:
    rig, heads = served_rig()
    rig.online()
    rig.run(3)
    swap(rig, heads, forged_log(rig, 2, 8))
    rig.host.kill()
    for name in list(rig.host.platter.names):
        if name.startswith("checkpoints/"):
            rig.host.platter.remove(name)
    rig.boot()
    rig.active.log = heads.log
    heads.on(rig)
    rig.start()
    rig.run(30)
    assert rig.agent.state is BrokerState.FENCED
    assert rig.agent.image.offset == 0
    assert rig.agent.heads.contradiction
    # And neither does the next process.
    rig.host.kill()
    rig.boot()
    rig.active.log = heads.log
    heads.on(rig)
    rig.start()
    rig.run(30)
    assert rig.agent.state is BrokerState.FENCED
    assert "forged" in rig.agent.catching_up.differs


def test_a_lost_image_is_fetched_again_when_the_log_is_the_same() -> None:
    rig, heads = served_rig()
    rig.online()
    rig.run(3)
    rig.host.kill()
    for name in list(rig.host.platter.names):
        if name.startswith("checkpoints/"):
            rig.host.platter.remove(name)
    rig.log.fill(3)
    rig.boot()
    heads.on(rig)
    rig.start()
    rig.run(5)
    assert rig.agent.state is BrokerState.ONLINE, rig.agent.reason
    assert rig.agent.image.offset == rig.log.end


def test_a_difference_behind_the_head_is_followed_once_the_head_is_extended() -> None:
    """The cluster lost what was under no head: the broker follows, as without heads."""
    rig, heads = served_rig()
    rig.online()
    rig.run(3)
    size = len(rig.log.batches)
    rig.active.commit(topic(60))
    rig.run(1)
    swap(rig, heads, forged_log(rig, size, 4))
    rig.run(20)
    assert not rig.agent.heads.contradiction
    assert rig.agent.state is BrokerState.ONLINE, rig.agent.reason
    assert rig.agent.image.offset == heads.log.end


def test_where_nothing_can_be_shown_the_broker_waits_fenced() -> None:
    rig, heads = served_rig()
    rig.online()
    rig.run(3)
    heads.answers = False
    size = len(rig.log.batches)
    rig.active.commit(topic(60))
    rig.run(1)
    swap(rig, heads, forged_log(rig, size, 4))
    rig.run(200)
    assert rig.agent.state is BrokerState.FENCED
    assert rig.agent.heads.problem
    assert not rig.agent.heads.contradiction
    heads.answers = True
    rig.run(10)
    assert rig.agent.state is BrokerState.ONLINE, rig.agent.reason


@pytest.mark.parametrize("how", ["one key", "other keys", "no keys", "tiles", "cut"])
def test_a_controller_that_lies_alone_fences_nobody(how: str) -> None:
    rig, heads = served_rig()
    rig.online()
    rig.run(3)
    head = kept(rig)
    forged = forged_log(rig, 2, 400)
    match how:
        case "one key":
            heads.log, heads.signers = forged, heads.signers[:1]
        case "other keys":
            heads.log = forged
            heads.signers = [SigningKey(heads.origin, bytes((n,)) * 32) for n in (7, 8, 9)]
        case "no keys":
            heads.log, heads.signers = forged, []
            heads.signers = [SigningKey(heads.origin, bytes((7,)) * 32)]
        case "tiles":
            rig.log.fill(20)
            heads.spoils_tiles = True
        case _:
            heads.size = 1
    rig.run(60)
    assert rig.agent.state is BrokerState.ONLINE, rig.agent.reason
    assert not rig.agent.heads.contradiction
    assert kept(rig) == head


def test_an_old_head_that_one_controller_shows_again_contradicts_nothing_for_good() -> None:
    """A compromised leader needs no key to show a head that the controllers signed before."""
    rig, honest = served_rig(urls=(ONE, TWO))
    rig.online()
    rig.run(3)
    before = kept(rig)
    true, forged = rig.active.log, forged_log(rig, 2, 4)
    liar = SignedHeads(rig, honest.log)
    liar.urls, liar.size = (ONE,), 2
    rig.active.log = forged
    rig.run(200)
    assert rig.agent.state is BrokerState.FENCED
    assert not rig.agent.heads.contradiction
    assert kept(rig) == before
    assert "fewer than this broker has seen" in rig.agent.heads.problem
    # The next leader is honest.
    liar.urls, rig.active.log = (THREE,), true
    rig.run(30)
    assert rig.agent.state is BrokerState.ONLINE, rig.agent.reason


def test_keys_of_the_configuration_are_believed_and_no_others() -> None:
    known = tuple(SigningKey("x", bytes((n,)) * 32).public.public for n in (4, 5, 6))
    rig, _ = served_rig(head_keys=known)
    rig.online()
    rig.run(20)
    assert kept(rig) is None
    assert "keys signed" in rig.agent.heads.problem
    rig, _ = served_rig(head_keys=tuple(SigningKey("x", seed).public.public for seed in SEEDS))
    rig.online()
    rig.run(3)
    assert kept(rig) is not None


@pytest.mark.parametrize("mode", list(NewGenerations))
def test_a_later_life_of_the_cluster(mode: NewGenerations) -> None:
    rig, heads = served_rig(new_generations=mode)
    rig.online()
    rig.run(3)
    restored = forged_log(rig, 2, 4)
    after = SignedHeads(rig, restored, generation=2)
    after.signers = [SigningKey(after.origin, bytes((n,)) * 32) for n in (7, 8, 9)]
    rig.active.log = restored
    rig.run(30)
    assert len(evidence(rig)) == 3
    if mode is NewGenerations.HOLD:
        assert rig.agent.state is BrokerState.FENCED
        assert "people decide" in rig.agent.catching_up.differs
        return
    assert rig.agent.state is BrokerState.ONLINE, rig.agent.reason
    found = kept(rig)
    assert found is not None
    assert found.origin == after.origin
    assert heads.origin != after.origin


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"format":2}', b"\xff"])
def test_a_damaged_file_stops_the_start(damage: bytes) -> None:
    rig, heads = served_rig()
    rig.online()
    rig.run(3)
    rig.host.kill()
    rig.boot()
    heads.on(rig)
    rig.do(lambda: rig.disk.replace(HEADS_FILE, damage))
    failures: list[Exception] = []

    def start() -> None:
        try:
            rig.agent.start()
        except HeadFileError as error:
            failures.append(error)

    rig.do(start)
    assert failures


def test_generations_are_read_from_origins() -> None:
    first = f"logberg/{CLUSTER_ID}"
    assert generation_of(first, CLUSTER_ID) == 1
    assert generation_of(f"{first}/2", CLUSTER_ID) == 2
    for other in ("logberg/x", f"{first}/1", f"{first}/02", f"{first}/-2", f"{first}/2/3", ""):
        assert generation_of(other, CLUSTER_ID) == 0
