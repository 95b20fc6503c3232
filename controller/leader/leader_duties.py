"""What starts when this controller is elected, and stops when it loses leadership.

The order at an election is:

1. apply everything that was committed before; if that is nothing, find the first feature levels;
   resign if the log names another cluster key than this controller's;
2. begin the pending image as the committed one;
3. begin the tables of contacts: every unfenced broker and every session counts as just heard
   from;
4. decide BeginEpoch, before any other decision.

The loss of leadership drops all of it at once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from structlog.typing import FilteringBoundLogger

from controller.leader.activation import begin_epoch
from controller.leader.cluster_key_check import ClusterKeyCheck
from controller.leader.decisions import Decision, Outcome, Written
from controller.leader.fencing import Fencing
from controller.leader.first_levels import FirstLevels
from controller.leader.heartbeats import Heartbeats
from controller.leader.leftover_elections import LeftoverElections
from controller.leader.periodic_elections import PeriodicElection
from controller.leader.proposer import Proposer
from controller.leader.self_registration import SelfRegistration
from controller.leader.session_expiry import SessionExpiry
from controller.leader.token_expiry import TokenExpiries
from controller.leader.voters_projection import VotersProjection
from controller.replica.applier import Applier
from controller.replica.pending import Pending
from ledger.batch import Provenance
from ledger.chain import LogMark
from metadata.configs.effective import OwnConfigs
from metadata.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    Record,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from quorum.api import Voter
from runtime.clock import Clock
from runtime.loop.slices import SlicedWork

FOLLOWED: Final = frozenset(
    {
        BrokerRegistrationChangeRecord,
        FenceBrokerRecord,
        RegisterBrokerRecord,
        UnfenceBrokerRecord,
        UnregisterBrokerRecord,
    }
)
"""The records that change the heartbeat table."""


class MarkedLog(Protocol):
    """What an epoch goes on behind: the ledger."""

    def mark(self) -> LogMark:
        """Return where the log ends."""
        ...


def provenance_of_node(node_id: int) -> Callable[[str], Provenance]:
    """Return a function that makes the provenance of a controller's own operation."""
    return lambda operation: Provenance(
        principal=f"Controller:{node_id}", auth_method="internal", operation=operation
    )


class LeaderDuties:
    """Begins and ends one controller's leaderships."""

    def __init__(
        self,
        clock: Clock,
        node_id: int,
        applier: Applier,
        proposer: Proposer,
        heartbeats: Heartbeats,
        fencing: Fencing,
        leftover_elections: LeftoverElections,
        periodic_elections: Sequence[PeriodicElection],
        self_registration: SelfRegistration,
        voters_projection: VotersProjection,
        token_expiry: TokenExpiries,
        session_expiry: SessionExpiry,
        first_levels: FirstLevels,
        own_configs: OwnConfigs,
        key_check: ClusterKeyCheck,
        resign: Callable[[str], None],
        voters: Callable[[], tuple[Voter, ...]],
        log: FilteringBoundLogger,
    ) -> None:
        self._clock = clock
        self._node_id = node_id
        self._applier = applier
        self._proposer = proposer
        self._heartbeats = heartbeats
        self._fencing = fencing
        self._leftover_elections = leftover_elections
        self._periodic_elections = periodic_elections
        self._self_registration = self_registration
        self._voters_projection = voters_projection
        self._token_expiry = token_expiry
        self._session_expiry = session_expiry
        self._first_levels = first_levels
        self._own_configs = own_configs
        self._key_check = key_check
        self._resign = resign
        self._voters = voters
        self._log = log
        self._elected = -1
        self.active = False
        """This controller leads, and the begin of its epoch is committed."""

    @property
    def elected(self) -> bool:
        """This controller leads. It may not be active yet."""
        return self._elected >= 0

    def begin(self, epoch: int, ledger: Callable[[], MarkedLog | None]) -> None:
        """This controller was elected: go on when all that was committed before is applied."""
        self._elected = epoch
        self._applier.when_idle(lambda: self._applied(epoch, ledger))

    def begin_at_once(self, epoch: int, ledger: Callable[[], MarkedLog | None]) -> None:
        """This controller was elected, and its image has all that was committed before."""
        self._elected = epoch
        self._applied(epoch, ledger)

    def _applied(self, epoch: int, ledger: Callable[[], MarkedLog | None]) -> None:
        wrong_key = self._key_check.look()
        if wrong_key and self._elected == epoch:
            self._resign(wrong_key)
        elif self._applier.image.offset or self._elected != epoch:
            self._activate(epoch, ledger(), {})
        else:
            self._first_levels.when_known(lambda levels: self._activate(epoch, ledger(), levels))

    def end(self) -> None:
        """This controller leads no more."""
        self._elected = -1
        self._first_levels.end()
        if self._proposer.pending is None:
            return
        self.active = False
        self._applier.pending = None
        self._applier.leading_epoch = -1
        self._fencing.end()
        self._self_registration.end()
        self._voters_projection.end()
        self._token_expiry.end()
        self._session_expiry.end()
        self._leftover_elections.end()
        for elections in self._periodic_elections:
            elections.end()
        self._heartbeats.clear()
        self._proposer.end()
        self._log.info("controller_resigned", epoch=self._proposer.epoch)

    def follow(self, records: Sequence[Record]) -> None:
        """Records were proposed: bring the heartbeat table up to them, if any is of `FOLLOWED`.

        The table follows proposed records, not committed ones: a broker that is being unfenced must
        be watched from then on.
        """
        pending = self._proposer.pending
        if pending is None:
            return
        for record in records:
            match record:
                case RegisterBrokerRecord() | BrokerRegistrationChangeRecord():
                    broker_id = record.broker_id
                case FenceBrokerRecord() | UnfenceBrokerRecord():
                    broker_id = record.id
                case UnregisterBrokerRecord():
                    self._heartbeats.note_active(record.broker_id, active=False)
                    self._heartbeats.forget(record.broker_id)
                    continue
                case _:
                    continue
            broker = pending.image.cluster.brokers.get(broker_id)
            if broker is None:
                continue
            watched = not broker.fenced
            if isinstance(record, RegisterBrokerRecord):
                self._heartbeats.register(broker_id, broker.broker_epoch, watched=watched)
            else:
                self._heartbeats.watch(broker_id, watched=watched)
            self._heartbeats.note_active(broker_id, active=broker.active)
        self._fencing.reschedule()

    def _activate(self, epoch: int, ledger: MarkedLog | None, levels: Mapping[str, int]) -> None:
        """Begin the epoch; `levels`: at which a new log begins."""
        if self._elected != epoch or ledger is None:
            return
        pending = Pending(self._applier.image.without_branch(), ledger.mark())
        self._applier.pending = pending
        self._applier.leading_epoch = epoch
        filling = self._heartbeats.begin(pending.image.cluster.brokers)
        SlicedWork(self._clock, filling, lambda: None).begin(at_once=True)
        self._proposer.begin(epoch, pending)
        self._fencing.begin()
        self._session_expiry.begin(pending.image.coordination.sessions)

        def begun(outcome: Outcome) -> None:
            if isinstance(outcome, Written):
                self.active = True
                self._log.info("controller_active", epoch=epoch, offset=outcome.offset)
                self._self_registration.begin()
                self._voters_projection.begin()
                self._token_expiry.begin()
                self._leftover_elections.begin()
                for elections in self._periodic_elections:
                    elections.begin()

        self._proposer.submit(
            Decision(
                lambda image: begin_epoch(
                    image,
                    self._node_id,
                    self._voters(),
                    levels,
                    self._own_configs,
                    self._key_check.records,
                ),
                provenance_of_node(self._node_id)("BeginEpoch"),
                begun,
                begins_epoch=True,
            )
        )
