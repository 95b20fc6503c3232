"""Health that tells the truth.

Rule: *live* means the process runs its loop; *ready* means that it may serve right now: the
controller says online, the lease holds, and the image is fresh. A broker that cannot reach a
controller is not ready, whatever its last state was.
"""

import msgspec

from broker_agent.agent import AgentCore
from broker_agent.states import BrokerState


class Health(msgspec.Struct, frozen=True, rename="camel"):
    """What `GET /health/ready` and `GET /v1/agent` answer."""

    broker_id: int
    cluster_id: str
    ready: bool
    state: str
    reason: str
    broker_epoch: int
    offset: int
    epoch: int
    head: str
    state_hash: str | None
    controller_url: str
    answered_seconds_ago: float | None
    """Since the sending of the last request that was answered; null: none yet."""
    lease_seconds: float
    history_differs: bool


def health_of(agent: AgentCore) -> Health:
    """Say how an agent is."""
    age = agent.freshness_s()
    view = agent.view
    return Health(
        broker_id=agent.config.broker_id,
        cluster_id=agent.config.cluster_id,
        ready=agent.may_serve() and agent.state is BrokerState.ONLINE,
        state=agent.state.value,
        reason=agent.reason,
        broker_epoch=agent.broker_epoch,
        offset=view.fetched_offset,
        epoch=view.fetched_epoch,
        head=view.mark.head.hex(),
        state_hash=view.state_hash_text(),
        controller_url=agent.controller_url,
        answered_seconds_ago=None if age == float("inf") else round(age, 3),
        lease_seconds=agent.config.lease_s,
        history_differs=view.differs,
    )
