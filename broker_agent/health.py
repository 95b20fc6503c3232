"""The health of a broker: whether it is live and whether it is ready.

Rule: *live* means that the process runs its event loop. *Ready* means that the broker may serve
now: the controller says that it is online, the lease holds, and the image has caught up. So a
broker that cannot reach a controller is not ready once its lease has run out.
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
    """Also true while a broker that was online stops: it still leads partitions."""
    state: str
    reason: str
    broker_epoch: int
    offset: int
    """The offset of the published image."""
    fetched_offset: int
    """Above `offset` while a transaction is open, or while the newest image is held back."""
    high_watermark: int
    """The newest that a controller named; -1: none yet."""
    epoch: int
    head: str
    state_hash: str | None
    controller_url: str
    answered_seconds_ago: float | None
    """Counted from the sending of the last request that was answered; null: none was yet."""
    lease_seconds: float
    differs: str | None
    """Why our history or state is not the controller's; null: no difference is known."""
    evidence: str | None
    """The newest note in the agent's folder of a history that this broker saw, and the cluster no
    longer has; null: there is none."""
    signed_head_batches: int | None
    """Of the newest signed head of the log that the agent saw; null: none was seen yet."""
    last_problem: str | None
    """Why the newest fetch failed; null: it was answered."""


def health_of(agent: AgentCore) -> Health:
    """Return the agent's state at this moment."""
    serving = agent.may_serve()
    age = agent.freshness_s()
    view = agent.view
    newest = agent.heads.newest
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
        evidence=agent.catching_up.evidence or None,
        signed_head_batches=None if newest is None else newest.head.size,
        last_problem=agent.fetches.last_problem or None,
    )
