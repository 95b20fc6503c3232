"""The judge of the kills notices what is missing, doubled, elsewhere, or differs."""

import shutil
from pathlib import Path

from audit.generated import write_history
from tests.kills.__main__ import in_office
from tests.kills.judge import Ledger, fenced_below, held_against, judge, read_ledger
from tests.kills.killing import Kill
from tests.kills.load import Acknowledged

ONE = Acknowledged("id-1", 7, 2, ("t",), ())


def ledger(**requests: list[tuple[int, int]]) -> Ledger:
    named = {name.replace("_", "-"): found for name, found in requests.items()}
    return Ledger("controller-1", named, {1: 1_000, 2: 2_000, 3: 3_000}, 0, 100)


def test_what_stands_once_where_it_was_told_is_well() -> None:
    assert held_against([ONE], [ledger(id_1=[(7, 2)], id_2=[(9, 2)])]) == ([], [], [])


def test_what_one_of_the_logs_lacks_is_missing() -> None:
    missing, doubled, misplaced = held_against([ONE], [ledger(id_1=[(7, 2)]), ledger()])
    assert missing == ["controller-1: request id-1, told at offset 7, is missing"]
    assert (doubled, misplaced) == ([], [])


def test_what_stands_twice_is_doubled() -> None:
    missing, doubled, misplaced = held_against([ONE], [ledger(id_1=[(7, 2), (9, 3)])])
    assert len(doubled) == 1
    assert (missing, misplaced) == ([], [])


def test_another_offset_or_epoch_is_misplaced() -> None:
    for elsewhere in ((8, 2), (7, 3)):
        missing, doubled, misplaced = held_against([ONE], [ledger(id_1=[elsewhere])])
        assert len(misplaced) == 1
        assert (missing, doubled) == ([], [])


def test_a_kill_counts_if_no_later_epoch_had_begun() -> None:
    kill = Kill("kill", 2, 3, 2_999, 50.0)
    assert in_office([kill, kill._replace(at_ms=3_001)], ledger()) == [kill]


def generated(folder: Path, count: int = 2) -> list[Path]:
    made = write_history(folder / "made", records=400, seed=1, brokers=3, topics=3)
    folders = [folder / f"controller-{n}" for n in range(1, count + 1)]
    for one in folders:
        shutil.copytree(made.nodes[0], one)
    return folders


def test_real_ledgers_are_read_and_held_against_each_other(tmp_path: Path) -> None:
    folders = generated(tmp_path)
    held = read_ledger(folders[0])
    once = {name: found[0] for name, found in held.requests.items() if len(found) == 1}
    request_id, (offset, epoch) = next(iter(once.items()))
    told = Acknowledged(request_id, offset, epoch, (), ())
    verdict, _ = judge([told], folders, held.end)
    assert not verdict.missing + verdict.doubled + verdict.misplaced + verdict.unsound, verdict
    assert verdict.fenced == fenced_below(folders[0], held.end) > fenced_below(folders[0], 10) == 0
    lost, _ = judge([told, told._replace(request_id="never")], folders, held.end)
    assert len(lost.missing) == 2


def test_a_damaged_ledger_is_unsound(tmp_path: Path) -> None:
    folders = generated(tmp_path, 3)
    log = next(iter(sorted((folders[1] / "log").glob("*.log"))))
    raw = bytearray(log.read_bytes())
    raw[len(raw) // 2] ^= 1
    log.write_bytes(raw)
    verdict, _ = judge([], folders, 0)
    assert verdict.unsound


def test_a_ledger_that_ends_before_the_others_did_is_unsound(tmp_path: Path) -> None:
    folders = generated(tmp_path)
    end = read_ledger(folders[0]).end
    assert not judge([], folders, end)[0].unsound
    assert len(judge([], folders, end + 1)[0].unsound) == 2
