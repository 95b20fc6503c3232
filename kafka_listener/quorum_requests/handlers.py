"""The handlers of this room for one controller, and what they share: projected log and snapshots.

It follows the controller: what is committed is projected, and what waits for it is answered.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.following import ControllerFollower
from kafka_listener.asking.refused_brokers import RefusedBrokers
from kafka_listener.asking.request import Handler
from kafka_listener.projection.batch_projection import BatchProjection
from kafka_listener.projection.clear_values import ClearValues
from kafka_listener.projection.digest_exchange import DigestExchange
from kafka_listener.projection.log_facts import FIRST_LEVEL
from kafka_listener.projection.projected_log import ProjectedLog
from kafka_listener.projection.projected_snapshots import ProjectedSnapshots
from kafka_listener.quorum_requests.describe_quorum import DescribeQuorumRequests
from kafka_listener.quorum_requests.entry_offsets import EntryOffsets
from kafka_listener.quorum_requests.fetch import FetchRequests
from kafka_listener.quorum_requests.fetch_snapshot import FetchSnapshotRequests
from kafka_listener.quorum_requests.leader_view import LeaderView, QuorumSource
from kafka_listener.quorum_requests.observers import Observers
from ledger.ledger import Ledger
from metadata.features import METADATA_VERSION
from metadata.image import MetadataImage
from metadata.image.erasures import EMPTY_ERASURES
from runtime.clock import Clock, Timer
from runtime.disk.interface import Disk
from snapshots.store import CheckpointStore

FETCH, DESCRIBE_QUORUM, FETCH_SNAPSHOT = 1, 55, 59
_CHECKPOINT_AGAIN_S: Final = 1.0
_CHECKPOINTS_IN_LOG: Final = 3
"""The projected log begins at the newest checkpoint but two, or later. Who needs more loads a
snapshot."""


class FollowedController(QuorumSource, Protocol):
    """A controller that can be followed."""

    @property
    def checkpoints(self) -> CheckpointStore | None:
        """The checkpoints here; None until the folder is open."""

    @property
    def newest_checkpoint(self) -> int:
        """The offset of the newest checkpoint; -1: there is none."""

    @property
    def voters(self) -> tuple[int, ...]:
        """The ids of the controllers that vote."""

    @property
    def awaits_subject_keys(self) -> bool:
        """Values of subjects can't be opened yet; `on_progress` follows when they can."""

    def write_checkpoint(self) -> bool:
        """Begin to write a checkpoint; False if none can be written now."""

    def tell_peers(self, data: bytes) -> None:
        """Send bytes once to the followers of the other controllers."""

    def follow(self, follower: ControllerFollower) -> None:
        """Send events to a follower, too."""


class QuorumRequests:
    """Follows one controller, and answers what Kafka's raft client asks it."""

    def __init__(
        self,
        controller: FollowedController,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        log: FilteringBoundLogger,
        refused: RefusedBrokers,
    ) -> None:
        """Make it before `controller` starts. `disk` is the controller's folder.

        `refused` is shared with the handlers of brokers.
        """
        self._controller = controller
        self._clear_values = clear_values = ClearValues(config.cluster_key)
        projection = BatchProjection(clear_values)
        self.log = ProjectedLog(clock, projection, self._wake, log)
        self.snapshots = ProjectedSnapshots(
            clock,
            disk,
            config.cluster_id,
            projection,
            lambda: controller.checkpoints,
            self._wake,
            log,
        )
        self._view = view = LeaderView(controller, config)
        self._clock = clock
        self.exchange = DigestExchange(
            clock,
            config.node_id,
            self.log.digests,
            controller.tell_peers,
            lambda: controller.voters,
            lambda: not clear_values.kept_sealed,
            self._on_verdict,
            log,
        )
        self._observers = Observers()
        self._entry_offsets = EntryOffsets()
        self._fetch = FetchRequests(
            controller,
            clock,
            view,
            self.log,
            self.snapshots,
            self._observers,
            lambda: not self.exchange.verdict,
            refused,
            log,
        )
        self._snapshot = FetchSnapshotRequests(view, self.snapshots, log)
        self._describe = DescribeQuorumRequests(
            controller, clock, view, lambda: self.log.end, self._observers, self._entry_offsets
        )
        self._newest_checkpoint = -1
        self._erasures = EMPTY_ERASURES
        self._needs_checkpoint = 0
        """The offset that a checkpoint has to reach, so that brokers can go on."""
        self._checkpoint_timer: Timer | None = None
        """Looks again whether it is there."""
        self._stopped = False
        controller.follow(self)

    def handlers(self) -> Mapping[int, Handler]:
        """Return the handlers, by api key."""
        return {
            FETCH: self._fetch.handle,
            DESCRIBE_QUORUM: self._describe.handle,
            FETCH_SNAPSHOT: self._snapshot.handle,
        }

    # -- events of the controller (ControllerFollower) ------------------------------------------

    def on_loaded(self, ledger: Ledger, image: MetadataImage) -> None:
        """Begin at the image, where no transaction is open."""
        level = image.features.levels.get(METADATA_VERSION) or FIRST_LEVEL
        self._entry_offsets.clear()
        self.exchange.restart()
        self._erasures = image.erasures
        self.log.restart(ledger, image.offset, level, image.epoch)

    def on_progress(self) -> None:
        ledger = self._controller.ledger
        if ledger is None or self._stopped:
            return
        self._entry_offsets.note(self._controller.place.index, ledger.log_end)
        if self._controller.image.erasures is not self._erasures:
            self._begin_behind_erasure(ledger, self._controller.image)
        if self._controller.awaits_subject_keys:
            return
        self.log.follow(min(self._controller.image.offset, ledger.log_end))
        if self._controller.newest_checkpoint != self._newest_checkpoint:
            self._move_start()
        self._wake()

    def on_leader(self) -> None:
        self._observers.clear()
        self._give_up_leadership()
        self._wake()

    def on_told(self, node_id: int, data: bytes) -> None:
        self.exchange.take(node_id, data)

    def on_stop(self) -> None:
        self._stopped = True
        self.log.stop()
        self.snapshots.stop()
        self._fetch.stop()
        self.exchange.stop()

    def _wake(self) -> None:
        if not self._stopped:
            self._fetch.wake()

    def _on_verdict(self) -> None:
        self._wake()
        self._give_up_leadership()

    def _give_up_leadership(self) -> None:
        """Let another lead if our projected log is wrong: brokers fetch from the leader only."""

        def resign() -> None:
            if self.exchange.wrong and self._view.leads and not self._stopped:
                self._controller.quorum.resign(self.exchange.verdict)

        if self.exchange.wrong:
            self._clock.call_soon(resign)

    def _begin_behind_erasure(self, ledger: Ledger, image: MetadataImage) -> None:
        """Begin the projected log anew where the state is without what was erased (ADR 0093).

        The values before that place can't be opened again, and what an offset shows never changes.
        """
        self._erasures = image.erasures
        opened = image.transaction
        start = image.offset if opened is None else opened.offset
        level = image.features.levels.get(METADATA_VERSION) or FIRST_LEVEL
        self._clear_values.kept_sealed = 0
        self.exchange.restart()
        self.log.restart(ledger, start, level, image.epoch)
        self.snapshots.forget_before(start)
        self._needs_checkpoint = start
        if self._checkpoint_timer is None:
            self._want_checkpoint()

    def _want_checkpoint(self) -> None:
        """Have a checkpoint written behind the erasure: until then brokers that lag wait."""
        self._checkpoint_timer = None
        if self._stopped or self._controller.newest_checkpoint >= self._needs_checkpoint:
            return
        self._controller.write_checkpoint()
        self._checkpoint_timer = self._clock.call_later(_CHECKPOINT_AGAIN_S, self._want_checkpoint)

    def _move_start(self) -> None:
        """Move the projected log's start to the newest checkpoint but two."""
        store = self._controller.checkpoints
        found = [] if store is None else store.list()
        self._newest_checkpoint = self._controller.newest_checkpoint
        if len(found) >= _CHECKPOINTS_IN_LOG:
            start = found[-_CHECKPOINTS_IN_LOG]
            self.log.move_start(start.offset, start.epoch)
