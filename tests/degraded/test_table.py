"""Each mode, each endpoint: what a controller answers, how fast, and with which advice.

Every cell of `tests.degraded.table.TABLE` is tried on real cores, over simulated disks and
network, in a mode that was brought about as in life.
"""

import pytest

from controller.http.degraded import RETRY_AFTER_S
from controller.http.route import Route
from controller.http.routes import ROUTES
from metadata.errors import ErrorCode
from tests.degraded.asking import Answer, Asked, ask_everything
from tests.degraded.modes import ENTER, Situation, healthy
from tests.degraded.table import AT_ONCE_S, NO_QUORUM_S, TABLE, Column, DegradedMode, columns_of
from tests.docs.degraded import PAGE, page

pytestmark = pytest.mark.simulation

NOTHING_THERE = (
    "describe_topic",
    "describe_partition",
    "describe_broker",
    "describe_user",
    "explain_broker",
    "plan_reassignments",
    "lose_brokers",
    "read_snapshot",
    "read_segment",
)
"""Before the first start has ended there is nothing to describe."""

WITHOUT_RECORDS = ("change_voters",)
"""The change that is asked for here is made already. So its outcome is known without a majority."""


def wrong(asked: Asked, mode: DegradedMode) -> str:
    """What is not as the table says; empty: all is."""
    cell, answer = TABLE[mode].cells[asked.column], asked.answer
    if asked.route.name in WITHOUT_RECORDS and cell.code is ErrorCode.REQUEST_TIMED_OUT:
        cell = cell._replace(code=ErrorCode.NO_QUORUM)
    said = f"{asked.route.name}, {asked.column}: {answer.status} {answer.code} in {answer.took_s} s"
    if answer.took_s > cell.within_s:
        return f"{said}: too late"
    if mode is DegradedMode.FORMING and asked.route.name in NOTHING_THERE and cell.code is None:
        return "" if answer.status == 404 else said
    if cell.code is None:
        expected = asked.route.status
    elif asked.column is Column.READY:
        expected = 503
    else:
        expected = cell.code.status
    if answer.status != expected:
        return f"{said}, not {expected}"
    return wrong_words(asked, answer, cell.code)


def wrong_words(asked: Asked, answer: Answer, code: ErrorCode | None) -> str:
    """What is missing of code, sentence and advice."""
    if asked.column is Column.READY:
        return "" if answer.body["reason"] else "it is not ready and doesn't say why"
    if code is None:
        return "" if "retry-after" not in answer.headers else "done, and to be tried again"
    seconds = RETRY_AFTER_S.get(code)
    expected = {
        "code": code.value,
        "retriable": code.retriable,
        "retryAfterMs": None if seconds is None else seconds * 1000,
    }
    # A broker's call was decoded: its fields are named as in Python.
    found = {name: answer.body.get(name, answer.body.get(_snake(name))) for name in expected}
    if found != expected:
        return f"{asked.route.name}: {found}, not {expected}"
    if answer.headers.get("retry-after") != (None if seconds is None else str(seconds)):
        return f"{asked.route.name}: retry-after {answer.headers.get('retry-after')}"
    return "" if len(answer.body["message"]) > 10 else f"{asked.route.name}: no sentence"


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


SIGNED = frozenset({"read_signed_head", "read_tile", "make_proof", "read_subject_keys"})


@pytest.mark.parametrize(("mode", "by"), ENTER, ids=str)
def test_a_mode_answers_as_the_table_says(mode: DegradedMode, by: str) -> None:
    situation = ENTER[mode, by]()
    # Before the first batch there is no head, and no tree of keys, so there is nothing to serve.
    but = SIGNED if mode is DegradedMode.FORMING else frozenset()
    made = TABLE[mode].cells[Column.CHANGE].code is None
    asked = ask_everything(*situation, changes_are_made=made)
    found = [wrong(each, mode) for each in asked if each.route.name not in but]
    assert [each for each in found if each] == []


def test_every_mode_is_brought_about() -> None:
    assert {mode for mode, _ in ENTER} == set(DegradedMode) == set(TABLE)
    assert all(set(row.cells) == set(Column) for row in TABLE.values())


def test_every_route_has_its_place_and_a_new_one_must_be_given_one() -> None:
    assert {each for route in ROUTES for each in columns_of(route)} == set(Column)
    with pytest.raises(KeyError):
        columns_of(Route("POST", "/v1/new", "new", "Something else", None))


def test_what_needs_a_majority_is_told_within_a_second_without_one() -> None:
    leaderless = [row for mode, row in TABLE.items() if mode.startswith("no quorum")]
    assert len(leaderless) == 3
    assert max(cell.within_s for row in leaderless for cell in row.cells.values()) == NO_QUORUM_S


def test_a_healthy_cluster_does_everything_at_once() -> None:
    for asked in ask_everything(*healthy(), changes_are_made=True):
        assert asked.answer.status == asked.route.status, asked.route.name
        assert asked.answer.took_s <= AT_ONCE_S


def stops(situation: Situation) -> str:
    return str(situation.cluster.stopped[situation.node])


@pytest.mark.parametrize(
    "by", [by for mode, by in ENTER if mode is DegradedMode.STOPPED], ids=lambda by: by
)
def test_a_node_that_its_disk_stops_says_what_to_do_and_the_others_go_on(by: str) -> None:
    situation = ENTER[DegradedMode.STOPPED, by]()
    cluster, node, _ = situation
    remedy = "make it writable" if "read-only" in by else "free space"
    assert (remedy if "EIO" not in by else "check the disk") in stops(situation)
    assert "start" in stops(situation)
    cluster.kill(node)
    cluster.run_until(lambda: cluster.shared.leader not in (None, node))
    cluster.create_topic("the-others-go-on", factor=1)
    cluster.hosts[node].faults.heal()
    cluster.start(node)
    cluster.settle()
    cluster.assert_equal()


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(PAGE.read_text()), "run: python -m tests.docs.degraded"
