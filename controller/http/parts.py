"""The parts of this room, wired: from a request to the rooms that answer it."""

from structlog.typing import FilteringBoundLogger

from controller.access.guard import AccessGuard
from controller.config import ControllerConfig
from controller.http.access_checks import AccessChecks
from controller.http.answering.broker_answers import broker_answers
from controller.http.answering.client_answers import client_answers
from controller.http.answering.image_answers import ImageAnswers
from controller.http.answering.log_answers import log_answers
from controller.http.answering.node_answers import NodeAnswers
from controller.http.answering.route_answers import RouteAnswers
from controller.http.api import Api
from controller.http.archive_runs import ArchiveRuns
from controller.http.attempt_noting import AttemptNoting
from controller.http.broker_requests import BrokerRequests
from controller.http.call import Answers, OnReply
from controller.http.clients.asked import ReadContext
from controller.http.coordination.renewals import Renewals
from controller.http.coordination.watches import CoordinationWatches
from controller.http.fetch_content import FetchContent
from controller.http.held_requests import HeldRequests
from controller.http.imports.parts import PartKeeping
from controller.http.joined_changes import JoinedChanges
from controller.http.metadata_fetch import MetadataFetch
from controller.http.metrics import ControllerMetrics
from controller.http.node_view import NodeView
from controller.http.pages import Pages
from controller.http.queries import Queries
from controller.http.resource_watch import ResourceWatch
from controller.http.routes import RouteMatch
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
from runtime.http.requests import Request
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
        metrics = ControllerMetrics(
            registry,
            clock,
            view,
            (self.held_requests, self.watching, self.coordination),
            lambda: self.coordination.scopes,
            self.sender,
            guard,
        )
        self.altering = BrokerRequests(config, view, "AlterPartition")
        assigning = BrokerRequests(config, view, "AssignReplicasToDirs")
        queries = Queries(view, self.pages)
        context = ReadContext(config, self.pages, opener, people.people)
        watch = Watch(
            storage.history,
            lambda: replica.image,
            self.watching,
            storage.files.damaged,
            opener,
        )
        self.resource_watch = ResourceWatch(
            clock,
            storage.history,
            lambda: replica.image,
            self.watching,
            replica.reads.at_least,
            storage.files.damaged,
            opener,
            people.also,
        )
        self.snapshots = SnapshotRanges(lambda: storage.files.store, self.fetch.note_piece)
        segments = SegmentRanges(config, storage.open_ledger, storage.history)
        archive_runs = ArchiveRuns(config, clock, storage.archiving, log)
        transparency = Transparency(
            config.cluster_id,
            lambda: view.signing,
            storage.tree,
            storage.history,
            lambda: replica.image,
        )

        def carry_out(found: RouteMatch, request: Request, on_reply: OnReply) -> None:
            # `api` is built below.
            self.api.handle_joined(found, request, on_reply)

        joined_changes = JoinedChanges(clock, config.write_wait_s, carry_out)
        answers: Answers = {
            **NodeAnswers(view, context, guard, metrics, Transferring(view, quorum)).table(),
            **broker_answers(view, self.fetch, self.altering, assigning),
            **log_answers(
                self.snapshots, segments, archive_runs, transparency, watch, self.resource_watch
            ),
            **ImageAnswers(view, queries).table(),
            **client_answers(
                view, joined_changes, PartKeeping(view), Renewals(view), self.coordination
            ),
        }
        self.api = Api(
            config,
            clock,
            view,
            metrics,
            RouteAnswers(view, queries, context, people, answers),
            SlowRequests(config.slow_request_s, log),
            self.access_checks,
            attempts,
            people,
            tracing,
        )
