"""The health of a broker: whether it is live and whether it is ready.

Rule: *live* means the process runs its loop; *ready* means that it may serve right now: the
controller says online, the lease holds, and the image is fresh. A broker that cannot reach a
controller is not ready, whatever its last state was.
"""

import math

import msgspec

from broker_agent.agent import AgentCore
from broker_agent.states import BrokerState


class Health(msgspec.Struct, frozen=True, rename="camel"):
    """What `GET /health/ready` and `GET /v1/agent` answer."""

    broker_id: int
    cluster_id: str
    ready: bool
    serving: bool
    """True too while a broker that was online moves its leaders off."""
    state: str
    reason: str
    broker_epoch: int
    offset: int
    """Of the image that readers see."""
    fetched_offset: int
    """Beyond `offset` while a transaction is open, or images are held back."""
    high_watermark: int
    """As the controller last said."""
    epoch: int
    head: str
    state_hash: str | None
    controller_url: str
    answered_seconds_ago: float | None
    """Since the sending of the last request that was answered; null: none yet."""
    lease_seconds: float
    differs: str | None
    """Why our history or state is not the controller's."""
    last_problem: str | None
    """Why the newest request that failed did; null while requests are answered."""


def health_of(agent: AgentCore) -> Health:
    """Say how an agent is."""
    serving = agent.may_serve()
    age = agent.freshness_s()
    view = agent.view
    return Health(
        broker_id=agent.config.broker_id,
        cluster_id=agent.config.cluster_id,
        ready=serving and agent.state is BrokerState.ONLINE,
        serving=serving,
        state=agent.state.value,
        reason=agent.reason,
        broker_epoch=agent.broker_epoch,
        offset=view.applied_offset,
        fetched_offset=view.fetched_offset,
        high_watermark=agent.high_watermark,
        epoch=view.fetched_epoch,
        head=view.mark.head.hex(),
        state_hash=view.state_hash_text(),
        controller_url=agent.controller_url,
        answered_seconds_ago=None if math.isinf(age) else round(age, 3),
        lease_seconds=agent.lease_length_s,
        differs=agent.catching_up.differs or None,
        last_problem=agent.fetches.last_problem or None,
    )
