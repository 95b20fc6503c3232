"""ELR is switched on and off: what happens to partitions that have one (KIP-966)."""

from typing import Any

import pytest

from controller.managers import sweep
from metadata.codec import decode_records
from metadata.features import ELR_VERSION
from metadata.records import FeatureLevelRecord, PartitionChangeRecord
from tests.unit.controller.managers.steps import Case


def update(case: Any, level: int, kind: str, **more: Any) -> tuple[int, Any]:
    change = {"feature": ELR_VERSION, "maxVersionLevel": level, "upgradeType": kind}
    answer: tuple[int, Any] = case.cluster.ask(
        "POST", "/v1/features", {"updates": [change], **more}
    )
    return answer


def test_switching_elr_off_empties_what_it_brought() -> None:
    case = Case(elr=True)
    case.run("fence 2; fence 3")
    assert case.state == "leader 1, isr 1, elr 3, last -, le 0, pe 2"
    status, reply = update(case, 0, "safe_downgrade")
    assert status == 200, reply
    assert case.state == "leader 1, isr 1, elr -, last -, le 0, pe 3"
    # From here on the last member stays in the ISR, and nobody is eligible.
    case.run("fence 1")
    assert case.state == "leader -1, isr 1, elr -, last -, le 1, pe 4"
    case.run("unfence 3")
    assert case.state == "leader -1, isr 1, elr -, last -, le 1, pe 4"


def test_a_partition_without_an_in_sync_replica_stands_in_the_way() -> None:
    case = Case(elr=True)
    case.run("fence 1; fence 2; fence 3")
    before = case.state
    status, reply = update(case, 0, "safe_downgrade")
    assert (status, reply["code"]) == (409, "FEATURE_UPDATE_FAILED")
    assert "partition t-0" in reply["message"]
    assert "(2, 3)" in reply["message"]
    assert case.state == before
    case.run("unfence 2")
    assert update(case, 0, "safe_downgrade")[0] == 200


def test_many_elrs_are_emptied_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "ROUND", 4)
    case = Case(elr=True, partitions=10)
    case.run("fence 2; fence 3")
    assert update(case, 0, "safe_downgrade")[0] == 200
    batches = [
        list(decode_records(b.records))
        for b in case.cluster.batches()
        if b.header.provenance.operation == "UpdateFeatures"
    ]
    counts = [sum(isinstance(r, PartitionChangeRecord) for r in batch) for batch in batches]
    assert counts == [4, 4, 2]
    assert [r for batch in batches for r in batch if isinstance(r, FeatureLevelRecord)] == [
        FeatureLevelRecord(ELR_VERSION, 0)
    ]
    assert all(case.cluster.partition("t", n).elr == () for n in range(10))


def test_a_dry_run_shows_all_and_changes_nothing() -> None:
    case = Case(elr=True)
    case.run("fence 2; fence 3")
    status, reply = update(case, 0, "safe_downgrade", dryRun=True)
    assert status == 200
    assert [r["type"] for r in reply["records"]] == [
        "PARTITION_CHANGE_RECORD",
        "FEATURE_LEVEL_RECORD",
    ]
    assert case.partition.elr == (3,)


def test_it_is_switched_on_and_off_again_over_http() -> None:
    case = Case()
    assert update(case, 1, "upgrade")[0] == 200
    case.run("fence 2; fence 3")
    assert case.partition.elr == (3,)
    assert update(case, 0, "safe_downgrade")[0] == 200
    assert update(case, 1, "upgrade")[0] == 200
    assert case.partition.elr == ()
