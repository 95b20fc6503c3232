"""What can be set on a controller, each with its unit and default.

Rule: settings that decide what is written are the leader's alone; replay reads none of them.
"""

from collections.abc import Mapping

import msgspec

from metadata.messages.versions import NEWEST

MIB = 1024 * 1024


class ControllerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one controller."""

    cluster_id: str
    node_id: int
    controller_urls: Mapping[int, str] = {}
    """Where each controller answers HTTP, by node id: a standby tells callers who leads."""

    newest_version: int = NEWEST
    """The newest version of requests that is read; lower only where a test plays an old release."""
    session_s: float = 9.0
    """A broker that is not heard from for so long is fenced."""
    heartbeat_s: float = 2.0
    """The longest time that a fetch is held; brokers send the next one at once."""
    beat_s: float = 0.1
    """How often the loop notes that it is alive; what comes later is our own stall."""

    require_authentication: bool = False
    """Only a broker's own credentials speak for it. Off: users and anonymous callers do, too."""
    delegations: Mapping[int, frozenset[str]] = {}
    """By broker: the principals for whom it may ask; `User:*`: for every user."""

    default_partitions: int = 1
    """For topics that are created with -1 partitions."""
    default_replication_factor: int = 3
    """For topics that are created with -1 replicas."""
    topic_deletion: bool = True
    partitions_per_request_max: int = 200_000
    """A request that creates more is refused: a typing error must not fill the cluster's memory."""
    partition_mutations_per_s: float = 20_000
    """How fast the quota for partitions that are created, deleted or touched grows; 0: no quota."""
    partition_mutations_burst: int = 200_000
    """The most that the quota saves up."""

    fetch_bytes_max: int = MIB
    """The most that one MetadataFetch reply carries, whatever it asks for: a few milliseconds of
    reading, verifying and writing. Who needs more asks again."""
    parked_requests_max: int = 20_000
    """Held requests, of all kinds together; beyond it they are answered at once."""
    waiting_decisions_max: int = 10_000
    """Requests that wait for their turn to decide; beyond it callers are told to slow down."""
    read_wait_s: float = 5.0
    """How long a read waits for a quorum, or for the offset that it asked for."""

    write_wait_s: float = 30.0
    """How long a change waits for its commit; then its caller is told to ask again."""

    clock_lag_warn_ms: int = 1000
    """A leader's clock that is so far behind the log's last timestamp is reported."""
    request_id_ahead_ms: int = 5 * 60 * 1000
    """A request id that claims to be drawn later than this ahead of our clock is refused."""

    checkpoint_bytes: int = 20 * MIB
    """A checkpoint is written after so many bytes of log."""
    checkpoint_interval_s: float = 3600.0
    """And after so long, if the log has moved at all."""
    ledger_segment_bytes: int = 64 * MIB

    scrub_bytes_per_s: int = MIB
    """So fast closed files are read through to see that they are still sound; 0: never."""
    scrub_interval_s: float = 86_400.0
    """From the end of one reading to the beginning of the next."""

    catch_up_chunk_bytes: int = MIB
    """Pieces in which a peer's files are fetched; at most 1 MiB."""
    catch_up_retry_s: float = 0.5
    """Pause after a peer did not answer."""
