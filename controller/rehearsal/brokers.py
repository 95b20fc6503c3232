"""What the brokers of a rehearsed cluster say to its leader.

Rule: a contact that changes a broker's state is decided as on a real controller. Every other
contact writes nothing: `hear` only notes it. The owner says which broker falls silent (`fence`).
"""

from collections.abc import Collection, Sequence

from controller.leader.decisions import Decision, Outcome, Written
from controller.managers.broker_states import OPERATIONS, Beat
from controller.managers.replica_directories import DirectoryReport
from controller.managers.sweep import a_sweep, in_rounds
from controller.rehearsal.rehearsal import Answered, Rehearsal
from ledger.batch import Provenance
from metadata.errors import LogbergError
from metadata.messages import (
    AlterPartitionRequest,
    AssignReplicasRequest,
    MetadataFetchRequest,
    WantedState,
)
from runtime.http.requests import Caller


class RehearsedBrokers:
    """All brokers of a rehearsed cluster."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal

    def register(self, caller: Caller, request: MetadataFetchRequest) -> Answered:
        """A broker's process registers. Raises LogbergError."""
        sweep, brokers = a_sweep(), self._rehearsal.leader.brokers
        return self._decide(
            Decision(
                in_rounds(lambda image, sweep: brokers.register(image, request, sweep), sweep),
                _provenance(caller, "RegisterBroker"),
                _nobody,
                first=True,
                sweep=sweep,
            )
        )

    def beat(self, caller: Caller, broker_id: int, wanted: WantedState) -> Answered | None:
        """A broker says what it wants, with everything applied; None: that changes nothing."""
        leader, image = self._rehearsal.leader, self._rehearsal.image
        broker = image.cluster.brokers[broker_id]
        end = self._rehearsal.mark.log_end
        leader.heartbeats.touch(broker_id, broker.broker_epoch)
        leader.heartbeats.report(broker_id, broker.broker_epoch, end)
        beat = Beat(broker_id, broker.broker_epoch, end, wanted)
        now, then = leader.brokers.state_change(image, beat)
        if now is then:
            return None
        sweep = a_sweep()
        outcomes: list[Outcome] = []
        answered = self._decide(
            Decision(
                in_rounds(lambda at, sweep: leader.brokers.heartbeat(at, beat, sweep), sweep),
                _provenance(caller, OPERATIONS[then]),
                outcomes.append,
                first=True,
                sweep=sweep,
            )
        )
        if wanted is WantedState.ONLINE:
            leader.leftover_elections.report(outcomes[0])
            self._rehearsal.work_until(lambda: True)
        return answered

    def hear(self, broker_ids: Sequence[int]) -> None:
        """Note what brokers have applied: everything. It is asked for when one of them stops."""
        end, brokers = self._rehearsal.mark.log_end, self._rehearsal.image.cluster.brokers
        heartbeats = self._rehearsal.leader.heartbeats
        for broker_id in broker_ids:
            epoch = brokers[broker_id].broker_epoch
            heartbeats.touch(broker_id, epoch)
            heartbeats.report(broker_id, epoch, end)

    def fence(self, broker_id: int) -> Answered:
        """A broker's session has ended: nobody heard from it since `hear`."""
        rehearsal, leader = self._rehearsal, self._rehearsal.leader
        base = rehearsal.mark.log_end
        leader.fencing.fence(broker_id)
        rehearsal.work_until(lambda: not leader.heartbeats.is_being_fenced(broker_id))
        return Answered(base, rehearsal.mark.log_end, rehearsal.clock.now_ms, None)

    def alter_partitions(self, caller: Caller, request: AlterPartitionRequest) -> Answered:
        """A leader of partitions reports their ISRs. Raises LogbergError."""
        isrs = self._rehearsal.leader.isrs
        return self._decide(
            Decision(
                lambda image: isrs.alter(image, request),
                _provenance(caller, "AlterPartition"),
                _nobody,
                first=True,
            )
        )

    def assign_directories(
        self, caller: Caller, broker_id: int, request: AssignReplicasRequest
    ) -> Answered:
        """A broker says where its replicas lie. Raises LogbergError."""
        return self._decide(
            Decision(
                self._rehearsal.leader.directories.assign(broker_id, request),
                _provenance(caller, "AssignReplicasToDirs"),
                _nobody,
                first=True,
                in_rounds=True,
            )
        )

    def report_directories(
        self,
        caller: Caller,
        broker_id: int,
        *,
        failed: Collection[bytes] = (),
        cordoned: tuple[bytes, ...] | None = None,
    ) -> Answered:
        """A broker says which of its directories have failed or are cordoned."""
        epoch = self._rehearsal.image.cluster.brokers[broker_id].broker_epoch
        said = DirectoryReport(broker_id, epoch, frozenset(failed), cordoned)
        sweep, directories = a_sweep(), self._rehearsal.leader.directories
        return self._decide(
            Decision(
                in_rounds(lambda image, sweep: directories.report(image, said, sweep), sweep),
                _provenance(caller, "ReportDirectories"),
                _nobody,
                first=True,
                in_rounds=True,
                sweep=sweep,
            )
        )

    def _decide(self, decision: Decision) -> Answered:
        rehearsal = self._rehearsal
        base, outcomes = rehearsal.mark.log_end, list[Outcome]()

        def done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            decision.on_outcome(outcome)

        rehearsal.leader.proposer.submit(decision._replace(on_outcome=done))
        rehearsal.work_until(lambda: bool(outcomes))
        (outcome,) = outcomes
        if isinstance(outcome, LogbergError):
            raise outcome
        assert isinstance(outcome, Written)
        return Answered(base, rehearsal.mark.log_end, rehearsal.clock.now_ms, outcome.result.reply)


def _provenance(caller: Caller, operation: str) -> Provenance:
    return Provenance(
        principal=caller.principal,
        auth_method=caller.method,
        client_address=caller.address,
        operation=operation,
    )


def _nobody(_outcome: Outcome) -> None:
    """Nobody else waits for the outcome."""
