"""The parts of a controller, wired: each room, and what it needs of the others.

Nothing happens here. A part begins when the controller starts it, or when an event comes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.erasure.parts import subject_keys
from controller.http.node_view import NodeCondition, NodeView
from controller.http.parts import HttpParts
from controller.leader.parts import LeaderParts
from controller.people.parts import people_door
from controller.policies import Policies
from controller.replica.parts import ReplicaParts
from controller.signing.parts import head_signing, head_witnessing
from controller.signing.witnessing import HeadWitness
from controller.state_judging import StateJudge
from controller.storage.parts import StorageParts
from controller.trail.parts import AttemptTrail
from ledger.archive_place import Archive
from ledger.batch import Batch
from ledger.ledger import Ledger
from metadata.image import MetadataImage
from quorum.api import Mark, Quorum
from runtime.clock import Clock
from runtime.disk.interface import Disk
from runtime.metrics import Registry
from runtime.randomness import Random, beside
from runtime.tracing import Tracing


class PartEvents(NamedTuple):
    """What the parts call when something has happened."""

    on_loaded: Callable[[Ledger, MetadataImage, Mark], None]
    """An image was loaded, at a start or after a catch-up."""
    on_batch: Callable[[Batch], None]
    """A batch was accepted."""
    on_progress: Callable[[], None]
    """More is committed and applied."""
    on_keys_usable: Callable[[], None]
    """The keys of subjects are here."""
    on_failed: Callable[[str], None]
    """The node can't go on, for this reason."""


class ControllerParts:
    """The rooms of one controller."""

    def __init__(
        self,
        config: ControllerConfig,
        *,
        clock: Clock,
        random: Random,
        disk: Disk,
        quorum: Quorum,
        condition: NodeCondition,
        events: PartEvents,
        log: FilteringBoundLogger,
        version: str,
        registry: Registry,
        on_settled: Callable[[], None],
        on_defect: Callable[[BaseException], None],
        policies: Policies,
        archive: Archive | None,
        tracing: Tracing | None,
        witnesses: Sequence[HeadWitness],
        draw_secret: Callable[[int], bytes],
    ) -> None:
        """See `Controller` for what they are. `log` names the node."""
        self.replica = ReplicaParts(
            config,
            clock,
            quorum,
            on_batch=events.on_batch,
            on_progress=events.on_progress,
            on_own_skipped=lambda reason: quorum.resign(f"our own batch was skipped: {reason}"),
            on_failed=events.on_failed,
            log=log,
        )
        self.storage = StorageParts(
            config,
            clock,
            disk,
            quorum,
            self.replica.applier,
            on_loaded=events.on_loaded,
            on_failed=events.on_failed,
            on_settled=on_settled,
            archive=archive,
            log=log,
        )
        self.leader = LeaderParts(
            config, clock, random, quorum, self.replica, on_defect, log, policies
        )
        self.view = NodeView(
            config, clock, version, condition, quorum, self.replica, self.leader, self.storage
        )
        self.state_judge = StateJudge(self.view, quorum, log)
        self.signing = head_signing(
            config,
            clock,
            disk,
            quorum,
            self.storage,
            self.leader.proposer,
            lambda: self.replica.image,
            self.view.voters,
            self.state_judge.contradicted,
            log,
        )
        self.view.signing = self.signing
        self.view.witnessing = self.witnessing = head_witnessing(
            config, clock, disk, self.storage, self.signing, witnesses, log
        )
        self.view.subject_keys = self.subject_keys = subject_keys(
            config,
            clock,
            disk,
            quorum,
            self.replica,
            self.leader,
            draw_secret,
            events.on_keys_usable,
            events.on_failed,
            log,
        )
        self.people = people_door(config, clock, self.replica, self.leader, draw_secret)
        # What is held and what is reported draw no dice of placement.
        holds, lives = beside(random), beside(random)
        self.trail = AttemptTrail(
            config,
            clock,
            lives.randbytes(16),
            quorum,
            self.leader.proposer,
            lambda: self.replica.image,
            self.leader.address_sealer,
            self.people.attempt,
        )
        self.trail.show(registry)
        self.http = HttpParts(
            config,
            clock,
            holds,
            self.view,
            quorum,
            registry,
            log,
            tracing,
            self.trail,
            self.people,
        )
