"""Fetching history from a peer: backfill, mending a segment, and catching up from far behind."""

import msgspec
import pytest

from ledger.backfill import Backfill, mend
from ledger.checker import BadSegmentError
from ledger.errors import DamagedLedgerError
from ledger.history_pull import HistoryPull
from ledger.incoming import drop_incoming
from ledger.segments import segment_bases
from ledger.verify import verify_ledger
from runtime.simulated.disk_faults import SLOW
from tests.unit.ledger.ledger_world import CLUSTER, Node, fill, make_batches, marks_of

BATCHES = make_batches(90, size=200, epochs={0: 1, 40: 2})
MARKS = marks_of(BATCHES)
SEGMENT_BYTES = 4_000


def peer_node(batches=BATCHES):
    node = Node(seed=9, segment_bytes=SEGMENT_BYTES, node_id=9)
    node.sync(fill(node.open(), batches))
    return node


PEER = peer_node()
FILES = PEER.files()
NAMES = sorted(FILES)
BASES = segment_bases(NAMES)


def run(steps):
    for _ in steps:
        pass


def drive(pull, files=FILES, piece=700, stop_after=None):
    """Feed a pull from a peer's files; return True if it is complete."""
    pieces = 0
    while not pull.complete:
        if pieces == stop_after:
            return False
        content = files[f"log/{pull.name}"]
        pull.add(content[pull.position : pull.position + piece])
        pieces += 1
    return True


def place(node, pull):
    outcome = []
    pull.place(outcome.append)
    node.settle()
    assert outcome == [None]


def young_node(keep):
    """Return a node that holds only the last `keep` segments."""
    node = Node(segment_bytes=SEGMENT_BYTES)
    for name in NAMES[-keep:]:
        node.platter.put(name, FILES[name])
    return node


def test_missing_history_is_fetched_back_newest_first():
    node = young_node(2)
    ledger = node.open(MARKS[-1])
    backfill = Backfill(node.disk, CLUSTER, ledger.catalogue)
    starts = []
    while (pull := backfill.next_pull(BASES)) is not None:
        run(pull.prepare())
        assert drive(pull)
        place(node, pull)
        backfill.adopt(pull)
        starts.append(ledger.log_start)
        first = next(iter(ledger.batches(ledger.log_start)))
        assert first.header.base_offset == ledger.log_start
    assert starts == BASES[-3::-1]
    assert node.files() == FILES
    assert [b.encoded for b in ledger.batches(0)] == [b.encoded for b in BATCHES]
    assert [start.epoch for start in ledger.epoch_start_offsets] == [1, 2]
    again = node.reopen(MARKS[-1])
    assert again.log_start == 0


def test_a_pull_goes_on_after_a_restart():
    for stop_after in range(6):
        node = young_node(1)
        ledger = node.open(MARKS[-1])
        pull = Backfill(node.disk, CLUSTER, ledger.catalogue).next_pull(BASES)
        run(pull.prepare())
        assert not drive(pull, stop_after=stop_after, piece=500)
        pull.close()
        ledger = node.reopen(MARKS[-1])
        pull = Backfill(node.disk, CLUSTER, ledger.catalogue).next_pull(BASES)
        run(pull.prepare())
        assert pull.position >= stop_after * 500 - 700
        assert drive(pull)
        place(node, pull)
        assert node.files()[NAMES[-2]] == FILES[NAMES[-2]]


def test_no_bad_byte_of_a_peer_is_put_in_place():
    node = young_node(1)
    ledger = node.open(MARKS[-1])
    name = NAMES[-2]
    before = node.files()
    for position in range(0, len(FILES[name]), 13):
        content = bytearray(FILES[name])
        content[position] ^= 4
        pull = Backfill(node.disk, CLUSTER, ledger.catalogue).next_pull(BASES)
        run(pull.prepare())
        with pytest.raises(BadSegmentError):
            drive(pull, FILES | {name: bytes(content)})
        pull.discard()
        pull.close()
    assert node.files() == before


def test_a_whole_but_other_history_is_refused():
    forged = peer_node(make_batches(90, size=200, epochs={0: 1, 40: 2}, tag=7_000))
    node = young_node(1)
    ledger = node.open(MARKS[-1])
    pull = Backfill(node.disk, CLUSTER, ledger.catalogue).next_pull(BASES)
    run(pull.prepare())
    with pytest.raises(BadSegmentError, match="chain hash"):
        drive(pull, forged.files())


def test_a_peer_whose_file_ends_too_early_is_refused():
    node = young_node(1)
    ledger = node.open(MARKS[-1])
    pull = Backfill(node.disk, CLUSTER, ledger.catalogue).next_pull(BASES)
    run(pull.prepare())
    with pytest.raises(BadSegmentError, match="too early"):
        drive(pull, FILES | {NAMES[-2]: FILES[NAMES[-2]][:-1]})


@pytest.mark.parametrize("which", [0, 3, -1])
def test_a_damaged_segment_is_mended_from_a_peer(which):
    name = NAMES[which]
    node = Node(segment_bytes=SEGMENT_BYTES)
    for other, content in FILES.items():
        node.platter.put(other, content)
    node.platter.cut(name, len(FILES[name]) // 2)
    with pytest.raises(DamagedLedgerError) as caught:
        list(node.open(MARKS[-1]).batches(0))
    assert caught.value.file == name
    pull = mend(node.disk, CLUSTER, caught.value.base_offset, MARKS[-1])
    run(pull.prepare(own=name))
    assert 0 < pull.position <= len(FILES[name]) // 2  # the good beginning is not fetched again
    assert drive(pull)
    place(node, pull)
    assert node.files() == FILES
    assert list(node.reopen(MARKS[-1]).batches(0))
    assert verify_ledger(node.disk, synced_to=MARKS[-1]).ok


def catch_up(node, ledger, mark, *, start_at=None, stop_after=None):
    """Pull up to a mark and seal. After this the manifest would be renamed."""
    pull = HistoryPull(node.disk, CLUSTER, mark, BASES, log_end=ledger.log_end, start_at=start_at)
    run(pull.prepare())
    pieces = 0
    while not pull.complete:
        if pieces == stop_after:
            pull.close()
            return None
        name, position = pull.wanted
        if pull.add(FILES[f"log/{name}"][position : position + 900]):
            run(pull.prepare())
        pieces += 1
    outcome = []
    pull.seal(outcome.append)
    node.settle()
    assert outcome == [None]
    return pull


@pytest.mark.parametrize("have", [0, 1, 20])
@pytest.mark.parametrize("reach", [45, 90])
def test_a_node_far_behind_jumps_by_ledger_batches(have, reach):
    node = Node(segment_bytes=SEGMENT_BYTES)
    ledger = fill(node.open(), BATCHES[:have])
    before = node.files()
    assert catch_up(node, ledger, MARKS[reach])
    assert node.files() == before  # nothing changes before the manifest does
    ledger = node.reopen(MARKS[reach])
    assert ledger.mark() == MARKS[reach]
    assert ledger.log_start == 0
    fill(ledger, BATCHES[reach:])
    assert node.files() == FILES
    assert node.files("incoming") == {}


def test_a_jump_that_never_became_the_manifest_is_forgotten():
    node = Node(segment_bytes=SEGMENT_BYTES)
    ledger = fill(node.open(), BATCHES[:20])
    catch_up(node, ledger, MARKS[60])
    ledger = node.reopen(MARKS[20])
    assert ledger.log_end == MARKS[20].log_end
    fill(ledger, BATCHES[20:])
    assert node.files() == FILES
    assert node.files("incoming")
    drop_incoming(node.disk)
    assert node.files("incoming") == {}


def test_a_jump_goes_on_after_a_restart_at_any_piece():
    for stop_after in range(0, 30, 3):
        node = Node(segment_bytes=SEGMENT_BYTES)
        ledger = fill(node.open(), BATCHES[:10])
        mark = node.sync(ledger)
        catch_up(node, ledger, MARKS[60], stop_after=stop_after)
        ledger = node.reopen(mark)
        assert catch_up(node, ledger, MARKS[75])  # to a later mark, even
        ledger = node.reopen(MARKS[75])
        fill(ledger, BATCHES[75:])
        assert node.files() == FILES


def test_the_move_into_place_survives_a_kill_at_every_step():
    for step in range(60):
        node = Node(segment_bytes=SEGMENT_BYTES)
        ledger = fill(node.open(), BATCHES[:10])
        node.sync(ledger)
        catch_up(node, ledger, MARKS[60], start_at=MARKS[40].log_end)
        node.start()
        node.faults.kill_at(step)
        outcome = []
        node.process.run(lambda node=node, outcome=outcome: outcome.append(node.open(MARKS[60])))
        died = not outcome
        node.faults.spare()
        node.lose_power()
        ledger = node.reopen(MARKS[60])
        assert ledger.mark() == MARKS[60]
        assert 0 < ledger.log_start <= MARKS[40].log_end
        report = verify_ledger(node.disk, synced_to=MARKS[60])
        assert report.ok
        assert report.log_start == ledger.log_start
        assert node.files("incoming") == {}
        if not died:
            return
    raise AssertionError


def test_what_a_checkpoint_skipped_is_backfilled_and_the_gap_closes():
    node = Node(segment_bytes=SEGMENT_BYTES)
    ledger = fill(node.open(), BATCHES[:10])
    node.sync(ledger)
    catch_up(node, ledger, MARKS[60], start_at=MARKS[40].log_end)
    ledger = node.reopen(MARKS[60])
    gap = ledger.catalogue.gap
    assert (gap.start, gap.end) == (MARKS[10].log_end, ledger.log_start)
    for _ in range(99):
        report = verify_ledger(node.disk, synced_to=MARKS[60])
        assert report.ok
        backfill = Backfill(node.disk, CLUSTER, ledger.catalogue)
        pull = backfill.next_pull(BASES)
        if pull is None:
            break
        run(pull.prepare())
        drive(pull)
        place(node, pull)
        # A restart between placing and adopting must see the same.
        ledger = node.reopen(MARKS[60])
        if ledger.catalogue.gap is not None or ledger.log_start > 0:
            Backfill(node.disk, CLUSTER, ledger.catalogue).adopt(pull)
    assert ledger.log_start == 0
    fill(ledger, BATCHES[60:])
    assert {n: c for n, c in node.files().items() if n.endswith(".log")} == FILES
    assert ledger.catalogue.gap is None
    assert report.notes == ()


def test_what_was_never_accepted_is_no_history_after_a_jump():
    """Batches behind the mark, left by an earlier incarnation, must not close the gap by
    themselves.
    """
    for have in (5, 10, 11, 30):
        node = Node(segment_bytes=SEGMENT_BYTES)
        ledger = fill(node.open(), BATCHES[:have])
        node.sync(ledger)
        fill(ledger, BATCHES[have:55])
        ledger = node.reopen(MARKS[have])
        catch_up(node, ledger, MARKS[60], start_at=MARKS[50].log_end)
        ledger = node.reopen(MARKS[60])
        gap = ledger.catalogue.gap
        assert (gap.start, gap.end) == (MARKS[have].log_end, ledger.log_start)
        report = verify_ledger(node.disk, synced_to=MARKS[60])
        assert report.ok
        assert report.batches == have + sum(
            ledger.log_start <= b.header.base_offset < MARKS[60].log_end for b in BATCHES
        )


@pytest.mark.parametrize("sealed", [False, True])
def test_a_jump_may_be_replaced_while_its_files_are_being_synced(sealed):
    node = Node(segment_bytes=SEGMENT_BYTES)
    node.faults.set_profile(SLOW)
    ledger = fill(node.open(), BATCHES[:10])
    first = HistoryPull(node.disk, CLUSTER, MARKS[40], BASES, log_end=ledger.log_end)
    outcomes = []
    pull_all(first)
    if sealed:
        first.seal(outcomes.append)
    first.close()
    second = HistoryPull(node.disk, CLUSTER, MARKS[70], BASES, log_end=ledger.log_end)
    pull_all(second, settle=lambda: node.world.run_for(0.02))
    second.seal(outcomes.append)
    node.world.run_for(60)
    assert outcomes[-1] is None
    node.faults.heal()
    ledger = node.reopen(MARKS[70])
    fill(ledger, BATCHES[70:])
    assert node.files() == FILES


def pull_all(pull, settle=lambda: None):
    for _ in pull.prepare():
        settle()
    while not pull.complete:
        name, position = pull.wanted
        if pull.add(FILES[f"log/{name}"][position : position + 900]):
            for _ in pull.prepare():
                settle()
        settle()


def test_a_pull_that_is_closed_while_it_is_placed_leaves_the_next_one_alone():
    for wait in (0.0, 0.001, 0.3, 0.6, 1.2):
        node = young_node(1)
        ledger = node.open(MARKS[-1])
        backfill = Backfill(node.disk, CLUSTER, ledger.catalogue)
        pull = backfill.next_pull(BASES)
        run(pull.prepare())
        drive(pull)
        node.faults.set_profile(SLOW)
        pull.place(lambda _: None)
        node.world.run_for(wait)
        pull.close()
        again = backfill.next_pull(BASES)
        for _ in again.prepare():
            node.world.run_for(0.2)
        assert drive(again)
        node.faults.heal()
        place(node, again)
        backfill.adopt(again)
        assert node.files()[NAMES[-2]] == FILES[NAMES[-2]]
        assert verify_ledger(node.disk, synced_to=MARKS[-1]).ok


def test_a_mark_that_says_another_epoch_is_refused():
    node = Node(segment_bytes=SEGMENT_BYTES)
    ledger = node.open()
    wrong = msgspec.structs.replace(MARKS[60], epoch=9)
    with pytest.raises(BadSegmentError, match="does not end in the mark"):
        catch_up(node, ledger, wrong)


def test_a_disk_that_fails_while_a_pull_is_prepared_is_told_at_its_next_piece():
    node = Node(segment_bytes=SEGMENT_BYTES)
    ledger = fill(node.open(), BATCHES[:10])
    pull = HistoryPull(node.disk, CLUSTER, MARKS[40], BASES, log_end=ledger.log_end)
    node.faults.fail("read", lasting=True)
    run(pull.prepare())
    node.faults.heal()
    name, position = pull.wanted
    with pytest.raises(OSError, match="simulated"):
        pull.add(FILES[f"log/{name}"][position:])
