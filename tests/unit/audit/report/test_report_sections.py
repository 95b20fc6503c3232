"""The sections of the report: sums, the worst, and what is left out."""

from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="the report is written by jinja2: logberg[audit]")

from audit.embedded import run_job
from audit.generated import write_history
from audit.places.replicas import open_replicas
from audit.report.attempts import attempts
from audit.report.availability import availability
from audit.report.changes import changes
from audit.report.details import Details
from audit.report.integrity import integrity
from audit.report.period import Period
from audit.report.privileged import privileged
from audit.report.tabular import ReportTable
from audit.report.transactions import transactions
from audit.report.words import DAY_MS, MINUTE_MS
from tests.report import sample
from tests.report.sample import BEGIN_MS, HOSTILE, PERIOD, REASON, facts, replica, row, span


def plain(said: str) -> str:
    return said.replace("\xa0", " ")


def texts(table: ReportTable, column: int) -> list[str]:
    return [each[column].text for each in table.rows]


def test_refused_attempts_are_summed_by_caller() -> None:
    rows = sample.attempts()
    found = attempts(rows, PERIOD, Details("log"))
    assert found.total == 70 * 71 // 2 + 5
    assert plain(found.sentence).replace("\u202f", " ") == (
        "2 490 attempts by 3 callers. 5 of them were answered, because rights are only logged."
    )
    assert texts(found.by_caller, 0)[0] == f"{HOSTILE} (token from 203.0.113.9)"
    assert found.by_caller.rows[0][1].sort == sum(range(2, 71, 2))
    assert len(found.newest.rows) == 60
    assert "11 are not on this page" in found.newest.left_out
    assert attempts([], PERIOD, Details("log")).total == 0


def test_people_and_the_cluster_are_counted_apart() -> None:
    rows = sample.changes()
    found = changes(rows, PERIOD, Details("log"))
    people = [each for each in rows if each.principal.startswith("User:")]
    assert found.people.total == sum(each.records for each in people)
    assert found.people.principals == 7
    assert found.people.busiest[0] == "User:terraform"
    assert found.cluster.principals == 2
    assert found.bookkeeping == 7 * 31
    assert HOSTILE in texts(found.people.table, 0)


def test_changes_of_other_days_are_not_counted() -> None:
    rows = sample.changes()
    day = Period(BEGIN_MS + 3 * DAY_MS, BEGIN_MS + 4 * DAY_MS - 1)
    found = changes(rows, day, Details("log"))
    assert found.people.total == sum(
        each.records
        for each in rows
        if each.day == "2026-10-23" and each.principal.startswith("User:")
    )


def test_more_principals_than_lanes_are_counted() -> None:
    rows = [
        sample.changed(day="2026-10-23", principal=f"User:{n:02}", records=n + 1, type="X_RECORD")
        for n in range(30)
    ]
    found = changes(rows, PERIOD, Details("log")).people
    assert found.figure is not None
    assert len(found.figure.names) == 24
    assert found.figure.names[0] == "User:29"
    assert found.figure.caption.startswith("6 principals with fewer changes not drawn: 21 ")


def test_a_principal_has_a_row_for_each_way_that_it_came() -> None:
    ways = [("certificate", "10.0.0.1", 9), ("token", "10.9.77.3", 1), ("", "", 1)]
    rows = [
        sample.changed(
            day="2026-10-23",
            principal="User:connect",
            operation="CreateAcls",
            auth_method=method,
            client_address=address,
            records=records,
            type="X_RECORD",
        )
        for method, address, records in ways
    ]
    found = changes(rows, PERIOD, Details("log")).people
    assert [each[0].more for each in found.table.rows] == [
        "certificate from 10.0.0.1",
        "token from 10.9.77.3",
        "\N{EN DASH}",
    ]
    assert found.principals == 1


def test_a_number_leads_to_its_first_records_and_to_the_command_for_all() -> None:
    details = Details("/var/log of ours", 3)
    rows = [row for row in sample.changes() if row.principal == "User:ana"]
    found = changes(rows, PERIOD, details).people
    (cells,) = found.table.rows
    assert cells[2].ref is not None
    detail = details.all[cells[2].ref]
    assert detail.total == sum(row.records for row in rows)
    offsets = sorted(offset for row in rows for offset in row.offsets)
    assert [each.offset for each in detail.records] == offsets[:6]
    last = max(row.last_offset for row in rows) + 1
    assert detail.command == (
        "logberg audit log '/var/log of ours' --principal User:ana --operation AlterConfigs "
        f"--from {offsets[0]} --to {last}"
    )
    assert all(mark in details.wanted() for mark in detail.records)


def test_nothing_changed() -> None:
    found = changes([], PERIOD, Details("log"))
    assert (found.people.total, found.people.figure, found.people.busiest) == (0, None, ("", 0))


def test_availability_sums_and_orders_by_time_without_leader() -> None:
    found = availability(sample.hurt(), PERIOD, Details("log"))
    assert found.partitions == 40
    assert found.offline_partitions == 10
    assert found.total.present_ms == 40 * PERIOD.length_ms
    assert found.total.offline_ms == sum(9 * MINUTE_MS * n for n in range(1, 11))
    assert found.total.under_min_isr_ms == 14 * 40 * MINUTE_MS
    assert found.total.leader_changes == 20 + 4, "four moved when their ISR shrank"
    assert found.worst is not None
    assert found.worst[0] == "payments-0"
    assert texts(found.worst_table, 0)[:3] == ["payments-0", "payments-1", "payments-2"]
    assert plain(texts(found.worst_table, 1)[0]) == "1 h 30 min"
    assert len(found.figures) == 2
    assert found.worst_table.left_out == ""


def test_what_is_outside_of_the_period_is_not_counted() -> None:
    day = Period(BEGIN_MS + 5 * DAY_MS + 10 * MINUTE_MS, BEGIN_MS + 6 * DAY_MS)
    found = availability(sample.hurt(), day, Details("log"))
    assert found.total.offline_ms == sum(9 * n - 10 for n in range(2, 11)) * MINUTE_MS
    assert found.total.under_min_isr_ms == 0
    assert found.total.leader_changes == 9, "the tenth moved before"


def test_the_sums_are_those_of_the_job_availability(tmp_path: Path) -> None:
    history = write_history(tmp_path, days=2, seed=11)
    replicas = open_replicas(str(history.folder))
    rows = [each for each in run_job("availability", replicas) if each[0] == "partition"]
    assert len(rows) > 100
    whole = Period(0, replicas[0].reader().last_timestamp_ms())
    found = availability(run_job("partition_intervals", replicas), whole, Details("log"))
    for column, value in zip((3, 4, 5, 7), found.total, strict=True):
        assert value == sum(each[column] for each in rows)
    assert found.partitions == len({each[1] for each in rows})


def test_partitions_that_never_met_min_isr_are_told_apart() -> None:
    day = BEGIN_MS + 3 * DAY_MS
    always = [
        span(7, day + n * DAY_MS, day + (n + 1) * DAY_MS, under_min_isr=True) for n in range(5)
    ]
    found = availability([*sample.hurt(), *always], PERIOD, Details("log"))
    assert (found.never_enough, found.never_enough_ms) == (1, 5 * DAY_MS)
    assert "1 partition" in found.figures[1].caption
    assert found.figures[1].drawing.count("data-tip") == 1, "the thirteenth day only"
    alone = availability(always, PERIOD, Details("log"))
    assert alone.figures == ()
    assert len(alone.worst_table.rows) == 1
    better = [*always, span(7, day + 5 * DAY_MS, None)]
    found = availability(better, PERIOD, Details("log"))
    assert (found.never_enough, found.never_enough_ms) == (0, 0)
    assert found.figures[0].drawing.count("data-tip") == 5


def test_the_worst_partitions_are_kept_and_the_rest_is_said() -> None:
    rows = [span(n, BEGIN_MS, BEGIN_MS + n + 1, offline=True) for n in range(3_000)]
    found = availability(rows, PERIOD, Details("log"))
    assert len(found.worst_table.rows) == 25
    assert found.worst_table.rows[0][0].text == "topic-2999"
    assert "2\u202f975 are not on this page" in found.worst_table.left_out


def test_privileged_changes_are_by_kind_and_say_for_whom() -> None:
    found = privileged(sample.privileged(), PERIOD, Details("log"))
    assert (found.total, found.unclean, found.allowed) == (9, 1, 0)
    assert [each[1].text for each in found.grave.rows] == ["voters", "feature", "unclean election"]
    assert "User:ana for User:kim (token from 10.9.77.3)" in texts(found.everyday, 3)
    (hostile,) = [each for each in found.everyday.rows if each[3].text.startswith(HOSTILE)]
    assert hostile[4].text == REASON
    assert hostile[2].more == "name: payments · salt: *** · storedKey: ***"


def test_a_setting_is_no_unclean_election() -> None:
    rows = [
        row(
            "privileged",
            timestamp_ms=BEGIN_MS,
            kind="unclean_election",
            subject="config:topic:orders:unclean.leader.election.enable",
            fields="{}",
        )
    ]
    found = privileged(rows, PERIOD, Details("log"))
    assert (found.unclean, found.allowed) == (0, 1)


def test_rare_kinds_are_not_pushed_out_by_common_ones() -> None:
    rows = [
        row("privileged", offset=n, timestamp_ms=BEGIN_MS + n, kind="token", fields="{}")
        for n in range(5_000)
    ]
    rows.insert(0, row("privileged", offset=0, timestamp_ms=BEGIN_MS, kind="quota", fields="{}"))
    found = privileged(rows, PERIOD, Details("log"))
    assert "quota" in texts(found.everyday, 1)
    assert len(found.everyday.rows) == 81
    assert "4\u202f920 of 5\u202f001 are not on this page" in found.everyday.left_out


def test_transactions_that_are_not_state_are_one_row_each() -> None:
    found = transactions(sample.log(), PERIOD, Details("log"))
    assert (found.aborted, found.records, found.open) == (2, 7, 1)
    assert texts(found.table, 0) == ["open", "aborted", "aborted"]
    assert texts(found.table, 6) == [
        f"{first} \N{EN DASH} {last}" for first, last in ((507, 508), (503, 506), (500, 502))
    ]


def test_the_certificate_of_sound_replicas_names_the_head_to_write_down() -> None:
    found = integrity(facts())
    assert found.ok
    assert found.verdict == "Sound: 3 replicas, one history"
    assert found.head == f"500123:{sample.HEAD}"


def test_the_head_is_one_that_all_sound_replicas_hold() -> None:
    behind = replica("controller-2", log_end=400, head="cd" * 32)
    damaged = replica("controller-3", log_end=9, log_is_sound=False)
    damaged = damaged._replace(head="00", problems=("offset 9: the checksum is wrong",))
    verified = facts().verified._replace(replicas=(replica("controller-1"), behind, damaged))
    found = integrity(facts(verified=verified))
    assert found.head == f"400:{'cd' * 32}"
    assert not found.ok
    assert found.verdict == "Damaged: controller-3"
    assert "the checksum is wrong" in found.sentence
    assert found.holders == "controller-1 and controller-2"
    assert found.replicas.rows[2][7].text == "none: the log is damaged"


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        (
            {"divergence": [row("divergence", base_offset=7, replica="controller-2")]},
            "The replicas differ",
        ),
        ({"integrity": [row("integrity", replica="controller-1")]}, "Findings in the log"),
    ],
)
def test_what_was_found_is_the_verdict(more: dict, verdict: str) -> None:
    found = integrity(facts(**more))
    assert (found.ok, found.verdict) == (False, verdict)


def test_a_damaged_snapshot_takes_the_verdict_and_leaves_the_head() -> None:
    problem = "checkpoints/9.checkpoint, offset 9: the digest is wrong"
    verified = facts().verified._replace(replicas=(replica("controller-1", problems=(problem,)),))
    found = integrity(facts(verified=verified))
    assert found.verdict == "Damaged: controller-1"
    assert found.head == f"500123:{sample.HEAD}"
    assert [each[3].text for each in found.findings.rows] == [problem]


def test_replicas_that_differ_have_no_head() -> None:
    verified = facts().verified._replace(problem="controller-2 differs")
    assert integrity(facts(verified=verified)).head == ""


def test_what_one_replica_cannot_prove_is_said() -> None:
    verified = facts().verified._replace(replicas=(replica("controller-1", history_from=900),))
    said = " ".join(integrity(facts(verified=verified)).not_proved)
    assert "one replica was given" in said
    assert "before offset 900" in said
