"""The states of a broker as its agent sees them, and every transition between them.

Rule: this table lists every change of an agent's state, and the state changes nowhere else. An
event that the table does not list for a state is a defect and raises.

The four names are KIP-500's. OFFLINE is a broker that no controller has heard from; FENCED one
that is registered and must not serve; ONLINE one that serves; STOPPING one whose leaders are
being moved off. GONE is the end of the process: it never comes back, only a new process
registers (a new incarnation).

An agent fences *itself* when its lease runs out (`LEASE_EXPIRED`): KIP-500 asked for it, and
without it a broker that is cut off serves stale metadata until others refuse its epoch.

A broker that was online goes on serving while it stops, since it still leads; one that was
fenced does not begin to, and one that loses its right while it stops never gets it back.
"""

from enum import Enum


class BrokerState(Enum):
    """Where a broker stands."""

    OFFLINE = "offline"
    FENCED = "fenced"
    ONLINE = "online"
    STOPPING = "stopping"
    GONE = "gone"


class AgentEvent(Enum):
    """What can happen to an agent."""

    REGISTERED = "registered"
    """A controller answered with a broker epoch."""
    TOLD_ONLINE = "told online"
    """The controller says that we are unfenced."""
    TOLD_FENCED = "told fenced"
    """The controller says that we are fenced."""
    LEASE_EXPIRED = "lease expired"
    """No request was answered for most of a session: we fence ourselves."""
    DIFFERS = "found to differ"
    """Our history or state is not the controller's: we fence ourselves."""
    HOST_UNREADY = "unready"
    """The host says that it can't serve: we fence ourselves."""
    STOP_ASKED = "asked to stop"
    """The host wants to stop (SIGTERM, SIGINT)."""
    TOLD_STOP = "told to stop"
    """The controller says that we may go."""
    STOP_EXPIRED = "stop limit reached"
    """Our own limit for stopping has passed: go, leaders moved or not."""
    EXPELLED = "expelled"
    """Stale epoch, foreign cluster, or no registration in time: fence, and end the process."""


_FENCING = (
    AgentEvent.TOLD_FENCED,
    AgentEvent.LEASE_EXPIRED,
    AgentEvent.DIFFERS,
    AgentEvent.HOST_UNREADY,
)

TRANSITIONS: dict[tuple[BrokerState, AgentEvent], BrokerState] = {
    (BrokerState.OFFLINE, AgentEvent.REGISTERED): BrokerState.FENCED,
    (BrokerState.OFFLINE, AgentEvent.STOP_ASKED): BrokerState.GONE,
    (BrokerState.OFFLINE, AgentEvent.EXPELLED): BrokerState.GONE,
    (BrokerState.FENCED, AgentEvent.TOLD_ONLINE): BrokerState.ONLINE,
    **{(BrokerState.FENCED, event): BrokerState.FENCED for event in _FENCING},
    (BrokerState.FENCED, AgentEvent.STOP_ASKED): BrokerState.STOPPING,
    (BrokerState.FENCED, AgentEvent.EXPELLED): BrokerState.GONE,
    (BrokerState.ONLINE, AgentEvent.TOLD_ONLINE): BrokerState.ONLINE,
    **{(BrokerState.ONLINE, event): BrokerState.FENCED for event in _FENCING},
    (BrokerState.ONLINE, AgentEvent.STOP_ASKED): BrokerState.STOPPING,
    (BrokerState.ONLINE, AgentEvent.EXPELLED): BrokerState.GONE,
    (BrokerState.STOPPING, AgentEvent.TOLD_ONLINE): BrokerState.STOPPING,
    **{(BrokerState.STOPPING, event): BrokerState.STOPPING for event in _FENCING},
    (BrokerState.STOPPING, AgentEvent.STOP_ASKED): BrokerState.STOPPING,
    (BrokerState.STOPPING, AgentEvent.TOLD_STOP): BrokerState.GONE,
    (BrokerState.STOPPING, AgentEvent.STOP_EXPIRED): BrokerState.GONE,
    (BrokerState.STOPPING, AgentEvent.EXPELLED): BrokerState.GONE,
}


class AgentStatus:
    """An agent's state, and whether it has the right to serve (as long as its lease holds)."""

    def __init__(self) -> None:
        self.state = BrokerState.OFFLINE
        self.serving = False

    def end(self) -> None:
        """Be gone without an event: the process is torn down."""
        self.state, self.serving = BrokerState.GONE, False

    def meet(self, event: AgentEvent) -> bool:
        """Go through the table. True when the state or the right to serve changed.

        Raises ValueError for an event that can't happen in this state.
        """
        before = (self.state, self.serving)
        self.state = next_state(self.state, event)
        if self.state is BrokerState.STOPPING:
            self.serving = self.serving and event not in _FENCING
        else:
            self.serving = self.state is BrokerState.ONLINE
        return (self.state, self.serving) != before


def next_state(state: BrokerState, event: AgentEvent) -> BrokerState:
    """Return the state after `event`. Raises ValueError for a pair that can't happen."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ValueError(f"a broker that is {state.value} can't be {event.value}") from None


def diagram() -> str:
    """Draw the table as a Mermaid state diagram (docs/states.md holds it; a test compares)."""
    lines = ["stateDiagram-v2", "    [*] --> offline"]
    lines += [
        f"    {before.value} --> {after.value}: {event.value}"
        for (before, event), after in TRANSITIONS.items()
        if before is not after
    ]
    return "\n".join([*lines, "    gone --> [*]"]) + "\n"
