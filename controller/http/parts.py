"""The parts of this room, wired: from a request to the rooms that answer it."""

from structlog.typing import FilteringBoundLogger

from controller.access.guard import AccessGuard
from controller.config import ControllerConfig
from controller.http.access_checks import AccessChecks
from controller.http.api import Api
from controller.http.archive_runs import ArchiveRuns
from controller.http.attempt_noting import AttemptNoting
from controller.http.broker_requests import BrokerRequests
from controller.http.coordination.renewals import Renewals
from controller.http.coordination.watches import CoordinationWatches
from controller.http.fetch_content import FetchContent
from controller.http.held_requests import HeldRequests
from controller.http.imports.parts import PartKeeping
from controller.http.metadata_fetch import MetadataFetch
from controller.http.metrics import ControllerMetrics
from controller.http.node_view import NodeView
from controller.http.pages import Pages
from controller.http.queries import Queries
from controller.http.resource_watch import ResourceWatch
from controller.http.segment_ranges import SegmentRanges
from controller.http.slow_requests import SlowRequests
from controller.http.snapshot_ranges import SnapshotRanges
from controller.http.transferring import Transferring
from controller.http.transparency import Transparency
from controller.http.watch import Watch
from controller.leader.contact_taker import ContactTaker
from controller.people.door import PeopleDoor
from controller.replica.contact_sender import ContactSender
from controller.replica.contacts import LIFE_BYTES
from controller.trail.parts import AttemptTrail
from metadata.image.old_pages import all_pages
from metadata.person_opener import PersonOpener
from quorum.api import Quorum
from runtime.clock import Clock
from runtime.metrics import Registry
from runtime.randomness import Random
from runtime.sockets.refusals import Refusals
from runtime.tracing import Tracing


class HttpParts:
    """Answers HTTP requests."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        random: Random,
        view: NodeView,
        quorum: Quorum,
        registry: Registry,
        log: FilteringBoundLogger,
        tracing: Tracing | None,
        trail: AttemptTrail,
        people: PeopleDoor,
    ) -> None:
        """`registry` gets the controller's metrics."""
        replica, storage = view.replica, view.storage
        self.held_requests = HeldRequests(clock, random, config.parked_requests_max)
        self.watching = HeldRequests(clock, random, config.parked_requests_max)
        self.pages = Pages(
            clock, lambda image: replica.applier.retirement.released(all_pages(image))
        )
        content = FetchContent(
            config,
            storage.open_ledger,
            storage.history,
            replica.marks,
            lambda: storage.snapshotting.offer,
            storage.files.damaged,
        )
        self.sender: ContactSender | None = None
        if config.standbys_take_heartbeats:
            self.sender = ContactSender(
                clock,
                config.node_id,
                random.randbytes(LIFE_BYTES),
                quorum.leader_and_epoch,
                quorum.send_contacts,
            )
        self.fetch = MetadataFetch(config, clock, view, content, self.held_requests, self.sender)
        self.taker = ContactTaker(
            view.leader.proposer,
            view.leader.heartbeats,
            view.leader.leadership_check,
            config.session_s,
            lambda: replica.image,
            lambda: content.log_end,
            quorum.send_confirmed,
            self.fetch.on_forwarded,
        )
        self.coordination = CoordinationWatches(
            clock,
            config.coordination,
            config.parked_requests_max,
            lambda: replica.image,
            lambda: replica.applier.idle,
            storage.open_ledger,
            replica.reads.at_least,
        )
        attempts = AttemptNoting(trail, people)
        opener = PersonOpener(config.cluster_key, lambda: replica.image.erasures)
        guard = AccessGuard(config, Refusals(log, clock.call_later), attempts.passed)
        self.access_checks = AccessChecks(guard, view, clock, attempts, people)
        self.api = Api(
            config,
            clock,
            view,
            ControllerMetrics(
                registry,
                clock,
                view,
                (self.held_requests, self.watching, self.coordination),
                lambda: self.coordination.scopes,
                self.sender,
                guard,
            ),
            self.fetch,
            BrokerRequests(config, view, "AlterPartition"),
            BrokerRequests(config, view, "AssignReplicasToDirs"),
            Queries(view, self.pages),
            Watch(
                storage.history,
                lambda: replica.image,
                self.watching,
                storage.files.damaged,
                opener,
            ),
            ResourceWatch(
                clock,
                storage.history,
                lambda: replica.image,
                self.watching,
                replica.reads.at_least,
                storage.files.damaged,
                opener,
                people.also,
            ),
            SnapshotRanges(lambda: storage.files.store, self.fetch.note_piece),
            SegmentRanges(config, storage.open_ledger, storage.history),
            ArchiveRuns(config, clock, storage.archiving, log),
            Transparency(
                config.cluster_id,
                lambda: view.signing,
                storage.tree,
                storage.history,
                lambda: replica.image,
            ),
            Renewals(view),
            Transferring(view, quorum),
            PartKeeping(view),
            self.coordination,
            SlowRequests(config.slow_request_s, log),
            self.access_checks,
            attempts,
            people,
            opener,
            tracing,
        )
