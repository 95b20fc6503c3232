"""Every row of the states table, and the right to serve beside it."""

from pathlib import Path

import pytest

from broker_agent.states import TRANSITIONS, BrokerState, Event, Standing, diagram, next_state

OFFLINE, FENCED, ONLINE, STOPPING, GONE = BrokerState
FENCING = {Event.TOLD_FENCED, Event.LEASE_EXPIRED, Event.DIFFERS, Event.HOST_UNREADY}

# Written down by hand, not taken from the table.
ROWS = {
    OFFLINE: {Event.REGISTERED: FENCED, Event.STOP_ASKED: GONE, Event.EXPELLED: GONE},
    FENCED: {
        Event.TOLD_ONLINE: ONLINE,
        Event.TOLD_FENCED: FENCED,
        Event.LEASE_EXPIRED: FENCED,
        Event.DIFFERS: FENCED,
        Event.HOST_UNREADY: FENCED,
        Event.STOP_ASKED: STOPPING,
        Event.EXPELLED: GONE,
    },
    ONLINE: {
        Event.TOLD_ONLINE: ONLINE,
        Event.TOLD_FENCED: FENCED,
        Event.LEASE_EXPIRED: FENCED,
        Event.DIFFERS: FENCED,
        Event.HOST_UNREADY: FENCED,
        Event.STOP_ASKED: STOPPING,
        Event.EXPELLED: GONE,
    },
    STOPPING: {
        Event.TOLD_ONLINE: STOPPING,
        Event.TOLD_FENCED: STOPPING,
        Event.LEASE_EXPIRED: STOPPING,
        Event.DIFFERS: STOPPING,
        Event.HOST_UNREADY: STOPPING,
        Event.STOP_ASKED: STOPPING,
        Event.TOLD_STOP: GONE,
        Event.STOP_EXPIRED: GONE,
        Event.EXPELLED: GONE,
    },
    GONE: {},
}


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", BrokerState)
def test_a_row(state, event):
    expected = ROWS[state].get(event)
    if expected is None:
        with pytest.raises(ValueError, match="can't be"):
            next_state(state, event)
    else:
        assert next_state(state, event) is expected


def test_the_table_has_no_row_more():
    assert len(TRANSITIONS) == sum(len(row) for row in ROWS.values())


def standing(state, serving):
    made = Standing()
    made.state, made.serving = state, serving
    return made


def test_who_was_online_serves_while_it_stops():
    one = standing(ONLINE, True)
    assert one.meet(Event.STOP_ASKED)
    assert (one.state, one.serving) == (STOPPING, True)
    one.meet(Event.TOLD_ONLINE)
    assert one.serving


@pytest.mark.parametrize("event", sorted(FENCING, key=lambda event: event.value))
def test_who_loses_the_right_while_it_stops_never_gets_it_back(event):
    one = standing(STOPPING, True)
    assert one.meet(event), "the host must hear of it"
    assert (one.state, one.serving) == (STOPPING, False)
    one.meet(Event.TOLD_ONLINE)
    assert not one.serving


def test_who_was_fenced_does_not_begin_to_serve_while_it_stops():
    one = standing(FENCED, False)
    one.meet(Event.STOP_ASKED)
    one.meet(Event.TOLD_ONLINE)
    assert (one.state, one.serving) == (STOPPING, False)


def test_an_event_that_changes_nothing_is_no_news():
    assert not standing(ONLINE, True).meet(Event.TOLD_ONLINE)
    assert not standing(FENCED, False).meet(Event.TOLD_FENCED)


def test_nothing_serves_but_online_and_stopping():
    for (state, event), after in TRANSITIONS.items():
        one = standing(state, state in {ONLINE, STOPPING})
        one.meet(event)
        if after in {OFFLINE, FENCED, GONE}:
            assert not one.serving, (state, event)


def test_the_diagram_in_the_docs_is_this_one():
    page = Path(__file__).parents[3] / "docs" / "states.md"
    assert f"```mermaid\n{diagram()}```" in page.read_text()
