"""What a controller shows of itself to Prometheus.

Rule: what is kept elsewhere is read when it is asked for; only requests and fencings are counted
here. Names begin with `logberg_`; units stand last.
"""

from collections.abc import Mapping
from typing import Protocol

from controller.http.describe import count_states
from controller.leader.heartbeats import Heartbeats
from controller.leader.mutation_quota import MutationQuota
from controller.storage.damage import DamageRecord
from controller.storage.scrubbing import Scrubbing
from ledger.ledger import Ledger
from metadata.image import MetadataImage
from runtime.metrics import Registry


class Figures(Protocol):
    """What is read of the controller."""

    @property
    def image(self) -> MetadataImage:
        """The committed image."""

    @property
    def ledger(self) -> Ledger | None:
        """The ledger, once it is open."""

    @property
    def active(self) -> bool:
        """It leads and has begun its epoch."""

    @property
    def heard(self) -> Heartbeats | None:
        """Who was heard from; None on a standby."""

    @property
    def serving(self) -> bool:
        """It answers requests."""

    @property
    def held_requests(self) -> int:
        """Requests that wait for something to say."""

    @property
    def waiting_decisions(self) -> int:
        """Requests that wait for their turn."""

    @property
    def quota(self) -> MutationQuota:
        """What changes of partitions may still use."""

    @property
    def pending_bytes(self) -> int:
        """Proposed and not committed."""

    @property
    def stalled_s(self) -> float:
        """Seconds for which the loop stood still."""

    @property
    def damage(self) -> DamageRecord:
        """What was found damaged, and repaired."""

    @property
    def scrubbing(self) -> Scrubbing:
        """How far the files at rest were read through."""

    @property
    def diverged(self) -> bool:
        """Its state is not the others'."""

    @property
    def snapshot_offset(self) -> int:
        """Of the newest checkpoint; 0: none."""


class ControllerMetrics:
    """Declares the figures and counts requests."""

    def __init__(self, registry: Registry, figures: Figures) -> None:
        self._registry = registry
        self._requests = registry.counter(
            "logberg_controller_requests_total",
            "HTTP requests, by operation and status",
            ("operation", "status"),
        )
        self._duration = registry.histogram(
            "logberg_controller_request_seconds",
            "From a request's arrival to its answer; held requests are left out",
            labels=("operation",),
        )
        gauge, counter = registry.read_gauge, registry.read_counter
        gauge("logberg_controller_active", "1 on the active controller", lambda: figures.active)
        gauge("logberg_controller_serving", "1 if requests are answered", lambda: figures.serving)
        gauge("logberg_log_end_offset", "End of the ledger", lambda: _ledger(figures, "log_end"))
        gauge(
            "logberg_log_start_offset", "Start of the ledger", lambda: _ledger(figures, "log_start")
        )
        gauge("logberg_image_offset", "End offset of the image", lambda: figures.image.offset)
        gauge("logberg_image_epoch", "Epoch of the last batch", lambda: figures.image.epoch)
        gauge(
            "logberg_snapshot_offset", "Of the newest checkpoint", lambda: figures.snapshot_offset
        )
        gauge("logberg_brokers", "Brokers, by state", lambda: _brokers(figures), ("state",))
        gauge("logberg_topics", "Topics", lambda: len(figures.image.topics.by_id))
        gauge("logberg_partitions", "Partitions", lambda: len(figures.image.topics.partitions))
        gauge(
            "logberg_leaderless_partitions",
            "Partitions without a leader",
            lambda: len(figures.image.topics.leaderless),
        )
        gauge("logberg_held_requests", "Requests that are held", lambda: figures.held_requests)
        gauge(
            "logberg_waiting_decisions",
            "Requests that wait for their turn",
            lambda: figures.waiting_decisions,
        )
        gauge("logberg_pending_bytes", "Proposed, not committed", lambda: figures.pending_bytes)
        counter(
            "logberg_loop_stalled_seconds_total",
            "For how long the loop stood still; broker sessions are longer by as much",
            lambda: figures.stalled_s,
        )

        gauge(
            "logberg_partition_mutations_left",
            "What the quota for changes of partitions holds on the leader; below 0: none now",
            lambda: figures.quota.tokens,
        )
        counter(
            "logberg_partition_mutations_total",
            "Partitions that changes created, deleted or touched, as the quota counts them",
            lambda: figures.quota.charged,
        )
        counter(
            "logberg_partition_mutations_throttled_total",
            "Changes that the quota refused",
            lambda: figures.quota.refused,
        )
        gauge("logberg_state_diverged", "1 while its state differs", lambda: figures.diverged)
        self._declare_damage(figures)

    def _declare_damage(self, figures: Figures) -> None:
        gauge, counter = self._registry.read_gauge, self._registry.read_counter
        counter(
            "logberg_scrub_bytes_total",
            "Read through at rest since the start",
            lambda: figures.scrubbing.bytes,
        )
        counter(
            "logberg_scrub_damage_total",
            "Files at rest that were found damaged by it",
            lambda: figures.scrubbing.damaged,
        )
        gauge(
            "logberg_scrub_last_full_pass_seconds",
            "When all of it was found sound last, since 1970; 0 not yet",
            lambda: figures.scrubbing.finished_ms / 1000,
        )
        counter(
            "logberg_damage_found_total",
            "Damage found on this node since its start, by part",
            lambda: _by_part(figures.damage.found_by_part),
            ("part",),
        )
        counter(
            "logberg_damage_repaired_total",
            "What of it was put right by itself, by part",
            lambda: _by_part(figures.damage.mended_by_part),
            ("part",),
        )

    def answered(self, operation: str, status: int, seconds: float | None) -> None:
        """A request was answered; `seconds` is None for one that may have been held."""
        self._requests.add(1, operation, str(status))
        if seconds is not None:
            self._duration.observe(seconds, operation)

    def render(self) -> bytes:
        """All of the registry's figures as text."""
        return self._registry.render()


def _ledger(figures: Figures, name: str) -> float:
    return 0 if figures.ledger is None else float(getattr(figures.ledger, name))


def _by_part(counts: Mapping[str, int]) -> Mapping[tuple[str, ...], float]:
    return {(part,): float(count) for part, count in counts.items()}


def _brokers(figures: Figures) -> Mapping[tuple[str, ...], float]:
    return {
        (state,): float(count)
        for state, count in count_states(figures.image, figures.heard).items()
    }
