"""An agent's metrics for Prometheus.

Rule: each value is read from its owner when Prometheus scrapes; nothing is counted a second time.
"""

import math

from broker_agent.agent import AgentCore
from broker_agent.states import BrokerState
from runtime.metrics import Registry


def registry_of(agent: AgentCore) -> Registry:
    """Return a registry that reads an agent's values."""
    registry = Registry()
    _declare_status(registry, agent)
    _declare_following(registry, agent)
    return registry


def _declare_status(registry: Registry, agent: AgentCore) -> None:
    fetches = agent.fetches
    gauge, counter = registry.read_gauge, registry.read_counter
    gauge(
        "logberg_broker_state",
        "1 for the state the broker is in.",
        lambda: {(state.value,): float(agent.state is state) for state in BrokerState},
        ("state",),
    )
    gauge(
        "logberg_broker_serving",
        "1 while the broker may answer clients.",
        lambda: float(agent.may_serve()),
    )
    gauge(
        "logberg_broker_epoch",
        "The broker's epoch; -1 before registration.",
        lambda: agent.broker_epoch,
    )
    gauge(
        "logberg_broker_lease_seconds",
        "How long the broker may serve after it sent a request that was answered.",
        lambda: agent.lease_length_s,
    )
    gauge(
        "logberg_broker_lease_age_seconds",
        "Seconds since the sending of the last answered request; +Inf before the first.",
        agent.freshness_s,
    )
    counter(
        "logberg_broker_self_fencings_total",
        "How often the lease ran out.",
        lambda: agent.self_fencings,
    )
    counter("logberg_broker_fetches_total", "Requests sent.", lambda: fetches.fetches)
    counter(
        "logberg_broker_fetch_failures_total",
        "Requests that had no answer, a refusal, or an answer that can't be used.",
        lambda: fetches.failures,
    )


def _declare_following(registry: Registry, agent: AgentCore) -> None:
    view, catching_up = agent.view, agent.catching_up
    gauge, counter = registry.read_gauge, registry.read_counter
    gauge(
        "logberg_broker_offset",
        "The offset of the published image.",
        lambda: view.applied_offset,
    )
    gauge(
        "logberg_broker_leader_epoch",
        "The epoch of the last record fetched.",
        lambda: view.fetched_epoch,
    )
    gauge(
        "logberg_broker_lag_records",
        "Records from the published image to the high watermark; NaN before the first answer.",
        lambda: lag_of(agent),
    )
    gauge(
        "logberg_broker_differs",
        "1 while the broker's history or state differs from the controller's.",
        lambda: float(bool(catching_up.differs)),
    )
    heads = agent.heads
    gauge(
        "logberg_broker_signed_head_batches",
        "Batches under the newest signed head that the agent saw; 0: none was seen yet.",
        lambda: 0 if heads.newest is None else heads.newest.head.size,
    )
    gauge(
        "logberg_broker_signed_head_contradicted",
        "1 while the log of the cluster is not the one whose signed head the agent saw.",
        lambda: float(bool(heads.contradiction)),
    )
    gauge(
        "logberg_broker_signed_head_not_believed",
        "1 while the agent, which has seen a signed head, finds none that it can believe.",
        lambda: float(heads.newest is not None and bool(heads.problem)),
    )
    counter(
        "logberg_broker_state_differences_total",
        "How often the broker's history or state differed from the controller's.",
        lambda: catching_up.differences,
    )
    counter(
        "logberg_broker_snapshots_loaded_total",
        "Snapshots loaded.",
        lambda: catching_up.snapshots_loaded,
    )
    counter(
        "logberg_broker_publisher_failures_total",
        "Exceptions that the host's publishers raised.",
        lambda: view.publisher_failures,
    )


def lag_of(agent: AgentCore) -> float:
    """Return the records from the published image to the high watermark; NaN: no answer yet."""
    if agent.high_watermark < 0:
        return math.nan
    return max(0, agent.high_watermark - agent.view.applied_offset)
