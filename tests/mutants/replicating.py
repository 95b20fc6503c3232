"""Mutants of ISRs and elections: who may change one, what brokers' events do, what is balanced.

`electing` has the mutants of the one function that changes a partition.
"""

from collections.abc import Generator

from controller.result import ControllerResult
from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives, instead

REPLICAS = searched_in("cluster", "replicas")
_CHANGE = "controller.managers.partition_change."
_ISR = "controller.managers.isr_changes."


def _nothing(*_args: object) -> Generator[None, None, list[object]]:
    yield
    return []


def _nobody(*_args: object) -> Generator[None, None, ControllerResult]:
    yield
    return ControllerResult(())


def _edit(target: str, *changes: tuple[str, str]) -> tuple[Patch, ...]:
    return (Patch(target, edited(*changes)),)


REPLICATING = (
    Mutant(
        "a fenced broker stays in the ISR",
        "17, I16",
        "Who is fenced or stops stays in its ISRs.",
        (
            Patch(
                "controller.managers.partition_events._without",
                instead(lambda _broker_id: lambda isr: isr),
            ),
        ),
        REPLICAS,
    ),
    Mutant(
        "an ineligible replica enters an ISR",
        "17, I16",
        "Nobody asks whether a member is fenced, stopping, unregistered or another process.",
        (Patch(_ISR + "_ineligible", gives("")),),
        REPLICAS,
    ),
    Mutant(
        "another process of a member enters an ISR",
        "17, I16",
        "The broker epoch of a member is not compared (KIP-903).",
        _edit(
            _ISR + "_ineligible",
            ("if member.broker_epoch not in (-1, broker.broker_epoch):", "if False:"),
        ),
    ),
    Mutant(
        "an old partition epoch changes an ISR",
        "17, I16",
        "A leader changes a state that it doesn't know.",
        _edit(
            _ISR + "_check_epochs", ("if wanted.partition_epoch < partition_epoch:", "if False:")
        ),
    ),
    Mutant(
        "an old leader epoch changes an ISR",
        "17, I16",
        "A leader of an epoch that has ended is not told so.",
        _edit(_ISR + "_check_epochs", ("if wanted.leader_epoch < leader_epoch:", "if False:")),
    ),
    Mutant(
        "a controller that is behind decides",
        "17, I16",
        "Epochs that this controller has not seen yet are taken.",
        _edit(
            _ISR + "_check_epochs",
            ("if wanted.leader_epoch > leader_epoch or ", "if False and "),
        ),
    ),
    Mutant(
        "any broker changes an ISR",
        "17, I16",
        "Nobody asks who leads.",
        _edit(_ISR + "_check_epochs", ("if broker_id != partition.leader:", "if False:")),
    ),
    Mutant(
        "strangers in the ISR",
        "17, I16",
        "The members of an ISR need not be replicas.",
        _edit(_ISR + "_check_isr", (" or not set(isr) <= set(partition.replicas)", "")),
    ),
    Mutant(
        "an ISR without its leader",
        "17, I16",
        "A leader may leave the ISR.",
        _edit(_ISR + "_check_isr", ("if partition.leader not in isr:", "if False:")),
    ),
    Mutant(
        "the ISR grows while the leader recovers",
        "17, I16",
        "A recovering leader may have followers in sync.",
        _edit(_ISR + "_check_isr", ("if len(isr) > 1:", "if False:")),
    ),
    Mutant(
        "anybody speaks for a leader",
        "3, I15",
        "AlterPartition doesn't look at credentials.",
        (Patch("controller.leader.identity.IdentityCheck._check_speaks_for", gives(None)),),
    ),
    Mutant(
        "a stale process changes ISRs",
        "17, I16",
        "The broker epoch of the leader is not compared. Guarded twice: both are off.",
        (
            Patch("controller.http.broker_requests.check_process", gives(None)),
            Patch(_ISR + "registered", gives(None)),
        ),
    ),
    Mutant(
        "a replica out of sync is elected",
        "17, I16",
        "Any live replica is valid.",
        _edit(
            _CHANGE + "_elect",
            ("if replica in candidates and acceptable(replica):", "if acceptable(replica):"),
        ),
    ),
    Mutant(
        "a preferred election turns unclean",
        "17, I16",
        "A preferred election takes any live replica.",
        _edit(
            _CHANGE + "_elect",
            (
                "if rules.mode is ElectionMode.UNCLEAN:",
                "if rules.mode is not ElectionMode.ONLINE:",
            ),
        ),
    ),
    Mutant(
        "a clean restart loses its place in the ELR",
        "17, I16",
        "Every new process counts as one that may have lost writes.",
        _edit("controller.managers.brokers.BrokerManager._leave", ("and not clean", "and True")),
    ),
    Mutant(
        "ELRs stay when ELR is switched off",
        "17, I16",
        "Nobody empties them.",
        (Patch("controller.managers.features.empty_elrs", instead(_nothing)),),
        REPLICAS,
    ),
    Mutant(
        "ELR is switched off over empty ISRs",
        "17, I16",
        "Nobody looks for partitions that only an ELR could save.",
        (Patch("controller.managers.elr._check_isrs", gives(())),),
        REPLICAS,
    ),
    Mutant(
        "leaders never return",
        "17, I12",
        "Nobody balances leaders.",
        (Patch("controller.leader.periodic_elections.PeriodicElection._pass", gives(None)),),
        REPLICAS,
    ),
    Mutant(
        "nobody looks for unclean elections",
        "17, I12",
        "A partition that may have one waits for the next event.",
        (Patch("controller.managers.leader_elections.ElectionManager.unclean", instead(_nobody)),),
    ),
    Mutant(
        "a pass without an end",
        "17, I12",
        "A pass changes any number of partitions at once.",
        _edit(
            "controller.managers.passes.Pass.changes",
            ("if len(found) == self._changes_max or number == self._looks_max:", "if False:"),
        ),
    ),
    Mutant(
        "passes end with the first one",
        "17, I12",
        "What one pass leaves waits for the next interval.",
        _edit("controller.managers.passes.Pass.changes", ("self.more = True", "self.more = False")),
    ),
    Mutant(
        "leaders are balanced by unclean elections",
        "17, I16",
        "A pass keeps the present leader, and elects unclean where there is none.",
        _edit(
            "controller.managers.leader_elections.ElectionManager.balance",
            ("ElectionMode.PREFERRED", "ElectionMode.UNCLEAN"),
        ),
    ),
    Mutant(
        "unclean elections where nobody allowed them",
        "17, I16",
        "The look for leaders does not ask for the topic's config.",
        _edit(
            "controller.managers.leader_elections.ElectionManager.unclean",
            ("partition, None, rules", "partition, ElectionMode.UNCLEAN, rules"),
        ),
    ),
)
