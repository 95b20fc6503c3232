"""Every row of the table of states, and the right to serve in each."""

from pathlib import Path

import pytest

from broker_agent.states import (
    TRANSITIONS,
    AgentEvent,
    AgentStatus,
    BrokerState,
    next_state,
)

OFFLINE, FENCED, ONLINE, STOPPING, GONE = BrokerState
FENCING: set[AgentEvent] = {
    AgentEvent.TOLD_FENCED,
    AgentEvent.LEASE_EXPIRED,
    AgentEvent.DIFFERS,
    AgentEvent.HOST_UNREADY,
}

# Written down by hand, not taken from the table.
ROWS = {
    OFFLINE: {
        AgentEvent.REGISTERED: FENCED,
        AgentEvent.STOP_ASKED: GONE,
        AgentEvent.EXPELLED: GONE,
    },
    FENCED: {
        AgentEvent.TOLD_ONLINE: ONLINE,
        AgentEvent.TOLD_FENCED: FENCED,
        AgentEvent.LEASE_EXPIRED: FENCED,
        AgentEvent.DIFFERS: FENCED,
        AgentEvent.HOST_UNREADY: FENCED,
        AgentEvent.STOP_ASKED: STOPPING,
        AgentEvent.EXPELLED: GONE,
    },
    ONLINE: {
        AgentEvent.TOLD_ONLINE: ONLINE,
        AgentEvent.TOLD_FENCED: FENCED,
        AgentEvent.LEASE_EXPIRED: FENCED,
        AgentEvent.DIFFERS: FENCED,
        AgentEvent.HOST_UNREADY: FENCED,
        AgentEvent.STOP_ASKED: STOPPING,
        AgentEvent.EXPELLED: GONE,
    },
    STOPPING: {
        AgentEvent.TOLD_ONLINE: STOPPING,
        AgentEvent.TOLD_FENCED: STOPPING,
        AgentEvent.LEASE_EXPIRED: STOPPING,
        AgentEvent.DIFFERS: STOPPING,
        AgentEvent.HOST_UNREADY: STOPPING,
        AgentEvent.STOP_ASKED: STOPPING,
        AgentEvent.TOLD_STOP: GONE,
        AgentEvent.STOP_EXPIRED: GONE,
        AgentEvent.EXPELLED: GONE,
    },
    GONE: {},
}


@pytest.mark.parametrize("event", AgentEvent)
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


def status(state, serving):
    made = AgentStatus()
    made.state, made.serving = state, serving
    return made


def test_who_was_online_serves_while_it_stops():
    one = status(ONLINE, True)
    assert one.meet(AgentEvent.STOP_ASKED)
    assert (one.state, one.serving) == (STOPPING, True)
    one.meet(AgentEvent.TOLD_ONLINE)
    assert one.serving


@pytest.mark.parametrize("event", [event for event in AgentEvent if event in FENCING])
def test_who_loses_the_right_while_it_stops_never_gets_it_back(event):
    one = status(STOPPING, True)
    assert one.meet(event), "the host must hear of it"
    assert (one.state, one.serving) == (STOPPING, False)
    one.meet(AgentEvent.TOLD_ONLINE)
    assert not one.serving


def test_who_was_fenced_does_not_begin_to_serve_while_it_stops():
    one = status(FENCED, False)
    one.meet(AgentEvent.STOP_ASKED)
    one.meet(AgentEvent.TOLD_ONLINE)
    assert (one.state, one.serving) == (STOPPING, False)


def test_an_event_that_changes_nothing_is_no_news():
    assert not status(ONLINE, True).meet(AgentEvent.TOLD_ONLINE)
    assert not status(FENCED, False).meet(AgentEvent.TOLD_FENCED)


def test_nothing_serves_but_online_and_stopping():
    for (state, event), after in TRANSITIONS.items():
        one = status(state, state in {ONLINE, STOPPING})
        one.meet(event)
        if after in {OFFLINE, FENCED, GONE}:
            assert not one.serving, (state, event)


def diagram() -> str:
    """The table as a Mermaid state diagram. docs/states.md holds it."""
    lines = ["stateDiagram-v2", "    [*] --> offline"]
    lines += [
        f"    {before.value} --> {after.value}: {event.value}"
        for (before, event), after in TRANSITIONS.items()
        if before is not after
    ]
    return "\n".join([*lines, "    gone --> [*]"]) + "\n"


def test_the_diagram_in_the_docs_is_this_one():
    page = Path(__file__).parents[3] / "docs" / "states.md"
    assert f"```mermaid\n{diagram()}```" in page.read_text()
