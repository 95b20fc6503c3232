"""A generation that begins: what the folder holds then, and after a crash at any step."""

import itertools
from typing import Any

import pytest

from ledger.batch import Provenance
from ledger.ledger import Ledger
from logberg.recovery.choosing import NoChoiceError, choose
from logberg.recovery.generations import UnknownVoterError
from logberg.recovery.recovering import RecoveryPlan, begin, image_of, plan_recovery
from logberg.recovery.survivors import NoSurvivorError, read_survivor
from metadata.codec import decode_records
from metadata.records import BeginEpochRecord, ClusterGenerationRecord, VotersRecord
from quorum.journal.damage import DamagedError
from quorum.journal.installing import finish_installation
from quorum.journal.opening import UNKNOWN_VOTE
from quorum.recovery.generation import EPOCH_GAP, NoEpochLeftError
from quorum.terms import TERM_MAX
from runtime.randomness import seeded
from runtime.simulated.world import ProcessKilledError
from tests.unit.logberg.recovery.folders import CLUSTER, Made, history, write
from tests.unit.quorum.journal.rig import LOG as QUIET
from tests.unit.quorum.journal.rig import Rig

LOG = history((1, 3), (2, 4), (5, 3))
END = LOG[-1].header.end_offset
WHO = Provenance("User:olga", "offline", operation="RecoverQuorum", reason="two disks burnt")


def plan(disk: Any, *voters: int, seed: int = 1, **named: tuple[str, int]) -> RecoveryPlan:
    """`named`: addresses, by `nID`."""
    survivors = [read_survivor("controller-1", disk)]
    return plan_recovery(
        choose(survivors),
        survivors,
        {n: named.get(f"n{n}") for n in voters or (1,)},
        now_ms=99,
        who=WHO,
        random=seeded(seed),
    )


def made(what: Made | None = None) -> Rig:
    rig = Rig()
    write(rig.disk, what or Made(1, LOG, in_ledger=7, committed=8))
    rig.disk.close()
    rig.kill()
    return rig


def opened(rig: Rig) -> Any:
    manifest = rig.store().load()
    return rig.open(manifest, cluster_id=CLUSTER), manifest


def test_the_new_generation_holds_all_that_the_folder_held() -> None:
    rig = made()
    ledger_before = {n: d for n, d in rig.files().items() if n.startswith("log/")}
    planned = plan(rig.disk)
    begin(planned, {})
    after = read_survivor("controller-1", rig.disk)
    assert after.damage == ""
    assert after.journal.generation.number == 2
    assert after.journal.voters == {1: after.journal.directory_id}
    assert after.journal.directory_id != bytes([1]) * 16
    first = planned.generation.first_batch
    assert after.end.log_end == first.header.end_offset == END + 3
    assert after.certain_end == END + 3
    assert after.hash_at(END) == LOG[-1].hash
    assert {n: d for n, d in rig.files().items() if n.startswith("log/")} == ledger_before


def test_the_log_says_who_did_it_and_why() -> None:
    rig = made()
    begin(plan(rig.disk), {})
    after = read_survivor("controller-1", rig.disk)
    batch = after.tail[-1]
    assert batch.header.provenance == WHO
    epoch, generation, voters = decode_records(batch.records)
    assert isinstance(epoch, BeginEpochRecord)
    assert generation == ClusterGenerationRecord(2, "two disks burnt")
    assert isinstance(voters, VotersRecord)
    assert [(v.voter_id, v.voter_directory_id) for v in voters.voters] == [
        (1, after.journal.directory_id)
    ]
    assert voters.voters[0].endpoints[0].host == "host-1"
    assert batch.header.epoch >= 5 + EPOCH_GAP
    image = image_of(after)
    assert image.quorum.generation == 2
    assert image.epoch == batch.header.epoch


def test_a_node_starts_on_it_sound_and_without_a_vote_in_its_epoch() -> None:
    rig = made()
    planned = plan(rig.disk)
    begin(planned, {})
    rig.lose_power()
    journal, manifest = opened(rig)
    assert journal.damage == ""
    assert journal.voted_for == UNKNOWN_VOTE
    assert journal.term == planned.generation.start.epoch
    assert journal.commit_index == journal.last_index
    ledger = Ledger.open(rig.disk, CLUSTER, synced_to=planned.survivor.ledger_end, log=QUIET)
    assert ledger.mark().encode() == manifest.mark.data


def test_the_old_journal_stays_as_it_was() -> None:
    rig = made()
    before = {n: d for n, d in rig.files().items() if n.endswith(".wal")}
    planned = plan(rig.disk)
    begin(planned, {})
    files = rig.files()
    assert planned.keep == "before-generation-2"
    assert {
        n.removeprefix(f"{planned.keep}/"): d
        for n, d in files.items()
        if n in {f"{planned.keep}/{name}" for name in before}
    } == before


def test_a_second_recovery_begins_the_third_generation() -> None:
    rig = made()
    begin(plan(rig.disk), {})
    with pytest.raises(UnknownVoterError, match="name it with its address"):
        plan(rig.disk, 1, 2, seed=2)
    second = plan(rig.disk, 1, 2, seed=2, n2=("host-2", 9))
    assert second.generation.voters[1].endpoints[0].port == 9
    second = plan(rig.disk, seed=2)
    assert second.generation.start.generation.number == 3
    begin(second, {})
    after = read_survivor("controller-1", rig.disk)
    assert after.end.log_end == END + 6
    assert after.journal.generation.number == 3
    assert opened(rig)[0].damage == ""


def test_two_recoveries_from_copies_of_one_folder_use_different_epochs() -> None:
    """A broker that followed the first one must not take the second for the same history."""
    epochs = {plan(made().disk, seed=seed).generation.start.epoch for seed in range(20)}
    assert len(epochs) == 20
    assert all(5 + EPOCH_GAP <= epoch < 5 + 2 * EPOCH_GAP for epoch in epochs)


def test_damage_of_the_ledger_before_its_mark_is_told() -> None:
    rig = made()
    begin(plan(rig.disk), {})
    name = min(n for n in rig.platter.names if n.startswith("log/"))
    rig.platter.flip_bit(name, len(rig.platter.names[name].content) - 30)
    after = read_survivor("controller-1", rig.disk)
    assert name in after.ledger_damage
    assert after.end.log_end < END


def test_new_voters_get_whole_folders() -> None:
    rig, other = made(), Rig(node_id=2)
    other.disk.close()
    other.kill()
    other.disk.close()
    begin(plan(rig.disk, 1, 2), {2: other.disk})
    one, two = (read_survivor("controller", each.disk) for each in (rig, other))
    assert one.journal.voters == two.journal.voters
    assert two.journal.voters[2] == two.journal.directory_id
    assert (two.node_id, two.journal.generation) == (2, one.journal.generation)
    assert one.end == two.end
    assert two.log_start == 0
    assert image_of(one).same_state(image_of(two))


REFUSED = [
    ("the chosen node is no voter", Made(1, LOG, 7), (2, 3), NoChoiceError, "node 1 has the most"),
    (
        "nobody knows it",
        Made(1, LOG, 7),
        (1, 9),
        UnknownVoterError,
        "has no address for controller 9",
    ),
    (
        "no epoch left",
        Made(1, LOG, 7, term=TERM_MAX - 2 * EPOCH_GAP),
        (1,),
        NoEpochLeftError,
        "none is left",
    ),
]


@pytest.mark.parametrize(
    ("what", "held", "voters", "error", "sentence"), REFUSED, ids=[row[0] for row in REFUSED]
)
def test_what_is_refused_changes_nothing(
    what: str, held: Made, voters: tuple[int, ...], error: type[Exception], sentence: str
) -> None:
    rig = made(held)
    before = rig.files()
    with pytest.raises(error, match=sentence):
        plan(rig.disk, *voters)
    assert rig.files() == before


@pytest.mark.parametrize("how", ["kill", "lose_power"])
@pytest.mark.parametrize("applied", [7, 12])
def test_a_crash_at_any_step_leaves_the_old_or_the_new(how: str, applied: int) -> None:
    """Also one that strikes while the next start finishes the work."""
    base = made(Made(1, LOG, applied)).files()
    seen = set()
    for step in itertools.count():
        rig = Rig(seed=step).with_files(base)
        rig.faults.kill_at(step, torn=0.5)
        try:
            begin(plan(rig.disk), {})
        except ProcessKilledError:
            getattr(rig, how)()
        else:
            rig.faults.spare()
            break
        if "new-generation/install" in rig.files():
            # Nobody is shown the old journal while the next start installs another one.
            with pytest.raises(NoSurvivorError, match="start this controller once"):
                read_survivor("controller-1", rig.disk)
        else:
            assert read_survivor("controller-1", rig.disk).journal.generation.number in {1, 2}
        for again in range(3):
            rig.faults.kill_at(step % 5 + again)
            try:
                finish_installation(rig.disk)
            except ProcessKilledError:
                getattr(rig, how)()
            rig.faults.spare()
        finish_installation(rig.disk)
        after = read_survivor("controller-1", rig.disk)
        generation = after.journal.generation.number
        seen.add(generation)
        assert after.damage == ""
        assert after.hash_at(END) == LOG[-1].hash
        assert after.end.log_end == (END if generation == 1 else END + 3)
        assert opened(rig)[0].damage == ""
    assert seen == {1, 2}
    assert step > 15


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"{", "is damaged"),
        (b"\xff", "is damaged"),
        (b"{}", "is damaged"),
        (b'{"format":2,"segment":"s","keep":"k","moves":[]}', "has format 2"),
    ],
)
def test_a_damaged_note_of_the_installation_is_a_sentence(data: bytes, sentence: str) -> None:
    rig = made()
    rig.platter.put("new-generation/install", data)
    with pytest.raises(DamagedError, match=sentence):
        finish_installation(rig.disk)


def test_a_full_disk_changes_nothing() -> None:
    rig = made()
    before = rig.files()
    planned = plan(rig.disk)
    rig.faults.capacity_bytes = 1
    with pytest.raises(OSError, match="No space"):
        begin(planned, {})
    rig.faults.capacity_bytes = None
    left = {n: d for n, d in rig.files().items() if not n.startswith("new-generation/")}
    assert left == before
    begin(planned, {})
    assert read_survivor("controller-1", rig.disk).journal.generation.number == 2
