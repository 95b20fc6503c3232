"""A controller's metrics for Prometheus.

Only requests are counted here. All other values are read from the parts that keep them, when
Prometheus asks. Names begin with `logberg_` and end with the unit.
"""

from collections.abc import Callable, Mapping, Sized

from controller.access.guard import AccessGuard
from controller.http.describe import count_states
from controller.http.ledger_growth import LedgerGrowth
from controller.http.node_view import NodeView
from controller.replica.contact_sender import ContactSender
from controller.storage.parts import StorageParts
from runtime.clock import Clock
from runtime.metrics import Registry

_HELD = ("metadata_fetch", "read_log")
"""Operations that wait for news: their durations say nothing about the node."""


class ControllerMetrics:
    """Declares the metrics and counts requests."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        view: NodeView,
        held: tuple[Sized, ...],
        watched: Callable[[], int],
        sender: ContactSender | None,
        guard: AccessGuard,
    ) -> None:
        """`registry` may hold other metrics of the process. `held`: where requests are held.

        `watched`: counts what clients of coordination watch here.
        `sender`: forwards heartbeats while this node is a standby; None: it takes none.
        """
        replica, leader, storage = view.replica, view.leader, view.storage
        self._registry = registry
        self._requests = registry.counter(
            "logberg_controller_requests_total",
            "HTTP requests, by operation and status",
            ("operation", "status"),
        )
        self._duration = registry.histogram(
            "logberg_controller_request_seconds",
            "From a request's arrival to its answer; requests that may be held are left out",
            labels=("operation",),
        )
        gauge, counter = registry.read_gauge, registry.read_counter
        gauge(
            "logberg_controller_active", "1 on the active controller", lambda: leader.duties.active
        )
        gauge(
            "logberg_controller_serving",
            "1 if the controller answers requests",
            lambda: view.serving,
        )
        gauge("logberg_log_end_offset", "End of the ledger", lambda: _ledger(view, "log_end"))
        gauge("logberg_log_start_offset", "Start of the ledger", lambda: _ledger(view, "log_start"))
        gauge("logberg_image_offset", "End offset of the image", lambda: replica.image.offset)
        gauge("logberg_image_epoch", "Epoch of the last batch", lambda: replica.image.epoch)
        gauge(
            "logberg_snapshot_offset",
            "Offset of the newest checkpoint; 0: none",
            lambda: _snapshot_offset(view),
        )
        gauge("logberg_brokers", "Brokers, by state", lambda: _brokers(view), ("state",))
        gauge("logberg_topics", "Topics", lambda: len(replica.image.topics.by_id))
        gauge("logberg_partitions", "Partitions", lambda: len(replica.image.topics.partitions))
        gauge(
            "logberg_leaderless_partitions",
            "Partitions without a leader",
            lambda: len(replica.image.topics.leaderless),
        )
        gauge(
            "logberg_unpreferred_partitions",
            "Partitions that their preferred leader, the first replica, does not lead",
            lambda: len(replica.image.topics.unpreferred),
        )
        gauge(
            "logberg_held_requests",
            "Requests that are held until there is news",
            lambda: sum(map(len, held)),
        )
        gauge(
            "logberg_coordination_watches",
            "Keys, prefixes and queues that clients of coordination watch on this node",
            watched,
        )
        gauge(
            "logberg_waiting_decisions",
            "Decisions that wait for their turn",
            lambda: leader.proposer.waiting,
        )
        gauge(
            "logberg_pending_bytes",
            "Bytes that are proposed and not committed",
            lambda: _pending_bytes(view),
        )
        counter(
            "logberg_loop_stalled_seconds_total",
            "How long the event loop stood still; broker sessions are extended by as much",
            leader.awake.stalled_s,
        )

        gauge(
            "logberg_partition_mutations_left",
            "Partitions left in the leader's quota for changes; below 0: changes are refused",
            lambda: leader.quota.tokens,
        )
        counter(
            "logberg_partition_mutations_total",
            "Partitions that changes created, deleted or touched, as the quota counts them",
            lambda: leader.quota.charged,
        )
        counter(
            "logberg_partition_mutations_throttled_total",
            "Changes that the quota refused",
            lambda: leader.quota.refused,
        )
        counter(
            "logberg_client_mutations_throttled_total",
            "Changes that a client's quota for partitions (controller_mutation_rate) refused",
            lambda: leader.client_quotas.refused,
        )
        gauge(
            "logberg_state_diverged",
            "1 while the controller's state differs from the others'",
            lambda: bool(view.condition.diverged),
        )
        counter(
            "logberg_forwarded_heartbeats_total",
            "Heartbeats that this node forwarded as a standby, by outcome: confirmed or given_up",
            lambda: _forwarded(sender),
            ("outcome",),
        )
        counter(
            "logberg_access_refused_total",
            "Requests whose caller lacks a right, by operation; enforced=no: log-only answered it",
            lambda: {key: float(count) for key, count in guard.refused.items()},
            ("operation", "enforced"),
        )
        self._declare_damage(storage)
        self._declare_growth(view, clock)
        self._declare_archive(storage)
        self._declare_heads(view, clock)

    def _declare_growth(self, view: NodeView, clock: Clock) -> None:
        gauge, storage = self._registry.read_gauge, view.storage
        growth = LedgerGrowth(
            clock,
            lambda: None if storage.files.ledger is None else storage.files.ledger.size_bytes(),
            lambda: 0 if storage.files.ledger is None else storage.history.bytes_away(0),
        )
        gauge("logberg_ledger_bytes", "Bytes of the ledger's segments on this node", growth.bytes)
        gauge(
            "logberg_ledger_bytes_per_day",
            "Bytes a day by which the ledger grew in the last day; known after ten minutes",
            lambda: _if_known(growth.bytes_a_day()),
        )

    def _declare_heads(self, view: NodeView, clock: Clock) -> None:
        signing, gauge = view.signing, self._registry.read_gauge
        if signing is None:
            return
        gauge(
            "logberg_signed_head_batches",
            "Batches under the newest head that a majority signed; 0: none yet",
            lambda: 0 if signing.newest is None else signing.newest.head.size,
        )
        gauge(
            "logberg_signed_head_unsigned_seconds",
            "How long batches have waited that are under no signed head; 0: all are under one",
            lambda: signing.waiting_ms(clock.wall_ms()) / 1000,
        )
        gauge(
            "logberg_signed_head_contradicted",
            "1 if the log here is not the one whose head this node signed earlier",
            lambda: bool(signing.contradiction),
        )
        gauge(
            "logberg_signed_head_differing_peers",
            "Peers that signed another root for a head than this node",
            lambda: len(signing.differing),
        )
        witnessing = view.witnessing
        if witnessing is None:
            return
        states = witnessing.states
        gauge(
            "logberg_signed_head_unwitnessed_seconds",
            "How long batches have waited that are under no witnessed head; 0: all are under one",
            lambda: witnessing.unwitnessed_ms(clock.wall_ms()) / 1000,
        )
        gauge(
            "logberg_witness_window_seconds",
            "The setting witnesses.window_ms: how long batches may wait for a witnessed head",
            lambda: witnessing.window_s,
        )
        gauge(
            "logberg_witness_head_batches",
            "Batches under the newest head that a witness has of this log; 0: none is known",
            lambda: {(one.witness.name,): float(one.size) for one in states},
            ("witness",),
        )
        gauge(
            "logberg_witness_failing",
            "1 while a witness does not take the newest head",
            lambda: {(one.witness.name,): float(bool(one.problem)) for one in states},
            ("witness",),
        )
        gauge(
            "logberg_witness_contradicting",
            "1 while a witness has another history of this log",
            lambda: {(one.witness.name,): float(bool(one.contradiction)) for one in states},
            ("witness",),
        )

    def _declare_archive(self, storage: StorageParts) -> None:
        gauge, counter = self._registry.read_gauge, self._registry.read_counter
        archiving, history = storage.archiving, storage.history
        if archiving is None:
            return
        gauge(
            "logberg_archived_bytes",
            "Bytes of the segments that are in the archive and no longer on this node",
            lambda: 0 if storage.files.ledger is None else history.bytes_away(0),
        )
        gauge(
            "logberg_archive_last_success_seconds",
            "When a look for segments to archive last ended well, since 1970; 0: not yet",
            lambda: archiving.last_success_ms / 1000,
        )
        counter(
            "logberg_archive_failures_total",
            "Looks for segments to archive that failed",
            lambda: archiving.failures,
        )
        counter(
            "logberg_archive_recalls_total",
            "Segments that were read back from the archive, by outcome: read or failed",
            lambda: {
                ("read",): float(history.recalls),
                ("failed",): float(history.failures),
            },
            ("outcome",),
        )

    def _declare_damage(self, storage: StorageParts) -> None:
        gauge, counter = self._registry.read_gauge, self._registry.read_counter
        counter(
            "logberg_scrub_bytes_total",
            "Bytes that the scrub has read since the start",
            lambda: storage.scrubbing.bytes,
        )
        counter(
            "logberg_scrub_damage_total",
            "Files that the scrub found damaged",
            lambda: storage.scrubbing.damaged,
        )
        gauge(
            "logberg_scrub_last_full_pass_seconds",
            "When a full pass last found no damage, since 1970; 0: not yet",
            lambda: storage.scrubbing.finished_ms / 1000,
        )
        counter(
            "logberg_damage_found_total",
            "Damage found on this node since its start, by part",
            lambda: _by_part(storage.damage.found_by_part),
            ("part",),
        )
        counter(
            "logberg_damage_repaired_total",
            "Damage that was repaired without an operator, by part",
            lambda: _by_part(storage.damage.mended_by_part),
            ("part",),
        )

    def answered(self, operation: str, status: int, seconds: float) -> None:
        """Count a request that was answered `seconds` after its arrival."""
        self._requests.add(1, operation, str(status))
        if operation not in _HELD:
            self._duration.observe(seconds, operation)

    def render(self) -> bytes:
        """Return all metrics of the registry as text."""
        return self._registry.render()


def _if_known(value: float | None) -> Mapping[tuple[str, ...], float]:
    return {} if value is None else {(): value}


def _ledger(view: NodeView, name: str) -> float:
    ledger = view.storage.files.ledger
    return 0 if ledger is None else float(getattr(ledger, name))


def _snapshot_offset(view: NodeView) -> float:
    offer = view.storage.snapshotting.offer
    return 0 if offer is None else offer.offset


def _pending_bytes(view: NodeView) -> float:
    pending = view.leader.proposer.pending
    return 0 if pending is None else pending.bytes


def _by_part(counts: Mapping[str, int]) -> Mapping[tuple[str, ...], float]:
    return {(part,): float(count) for part, count in counts.items()}


def _forwarded(sender: ContactSender | None) -> Mapping[tuple[str, ...], float]:
    confirmed, given_up = (0, 0) if sender is None else (sender.confirmed, sender.given_up)
    return {("confirmed",): float(confirmed), ("given_up",): float(given_up)}


def _brokers(view: NodeView) -> Mapping[tuple[str, ...], float]:
    counts = count_states(view.replica.image, view.leader.heard)
    return {(state,): float(count) for state, count in counts.items()}
