"""The states of a broker as its agent sees them, and every transition between them.

Rule: this table lists every change of an agent's state, and the state changes nowhere else. An
event that the table does not list for a state is a defect and raises.

The first four names are KIP-500's. An OFFLINE broker has not registered yet. A FENCED broker is
registered and must not serve. An ONLINE broker serves. A STOPPING broker waits until the controller
has moved its leaders to other brokers. GONE is the end of the process. Only a new process, with a
new incarnation, registers again.

An agent fences *itself* when its lease runs out (`LEASE_EXPIRED`), as KIP-500 proposes. Otherwise a
broker that is cut off would serve stale metadata until others refuse its epoch.

A broker that was online continues to serve while it stops, since it still leads. A broker that was
fenced does not serve while it stops. A stopping broker that loses the right to serve never gets it
back.
"""

from enum import Enum


class BrokerState(Enum):
    """A broker's state, as its agent sees it."""

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
    """No request was answered for most of a session: the agent fences the broker."""
    DIFFERS = "found to differ"
    """Our history or state is not the controller's: the agent fences the broker."""
    HOST_UNREADY = "unready"
    """The host says that it can't serve: the agent fences the broker."""
    STOP_ASKED = "asked to stop"
    """The host asks the agent to stop (SIGTERM, SIGINT)."""
    TOLD_STOP = "told to stop"
    """The controller says that the broker may stop."""
    STOP_EXPIRED = "stop limit reached"
    """The agent's limit for the shutdown has passed: it ends, even if leaders have not moved."""
    EXPELLED = "expelled"
    """Stale broker epoch, another cluster, or no registration in time: the agent ends."""


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
    """An agent's state, and whether it may serve while its lease holds."""

    def __init__(self) -> None:
        self.state = BrokerState.OFFLINE
        self.serving = False

    def end(self) -> None:
        """Become GONE without an event, because the host abandons the agent."""
        self.state, self.serving = BrokerState.GONE, False

    def meet(self, event: AgentEvent) -> bool:
        """Do the table's transition. Returns whether the state or the right to serve changed.

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
