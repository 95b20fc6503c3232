"""Mutants of large operations: requests and events that are written in rounds (ADR 0036)."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives

MOVES = searched_in("cluster", "moves")
_CHANGES = "controller.leader.changes."
_ROUNDS = "controller.managers.rounds.Rounds."
_MOVES = "controller.managers.reassignments."
_ELECTIONS = "controller.managers.asked_elections."
_SWEEP = "controller.managers.sweep.Sweep."
_ISRS = "controller.managers.isr_changes."


def _edit(target: str, *changes: tuple[str, str]) -> tuple[Patch, ...]:
    return (Patch(target, edited(*changes)),)


DIVIDING = (
    Mutant(
        "a replica comes back while its directory is left",
        "17, I17",
        "Between two rounds, a leader may bring a replica back whose directory has failed.",
        _edit(
            _SWEEP + "takes_out",
            (" and (directories is None or directory in directories)", " and directories is None"),
        ),
    ),
    Mutant(
        "a broker leaves with all its replicas when a directory is left",
        "17, I17",
        "Between two rounds, its replicas in other directories are refused too.",
        _edit(
            _SWEEP + "takes_out",
            (" and (directories is None or directory in directories)", ""),
        ),
    ),
    Mutant(
        "a replica comes back to a failed directory",
        "17, I17",
        "A leader may bring a replica into the ISR that lies on a directory which has failed.",
        _edit(
            _ISRS + "_check_members",
            ("elif broker is not None and not is_online(broker, directory):", "elif False:"),
        ),
        MOVES,
    ),
    Mutant(
        "earlier rounds ignored",
        "9, I9",
        "A leader knows only the rounds that it wrote itself.",
        _edit(
            _CHANGES + "Changes._resume",
            ("if answer is None:", "if answer is None or answer.epoch != self._proposer.epoch:"),
        ),
        MOVES,
    ),
    Mutant(
        "a last round that writes nothing is forgotten",
        "9, I9",
        "Its request, sent again, is executed on what has come since.",
        _edit(
            "controller.leader.batch_writer.BatchWriter.plan",
            ("(result.unfinished or result.began)", "result.unfinished"),
        ),
    ),
    Mutant(
        "refusals of earlier rounds are forgotten",
        "9, I9",
        "The log keeps how many partitions a round decided about, and no errors.",
        _edit(_ROUNDS + "next", ("_Answer(len(results), errors)", "_Answer(len(results), {})")),
        MOVES,
    ),
    Mutant(
        "the last round's answer is taken for all of it",
        "9, I9",
        "A caller hears of the partitions in the last round only.",
        _edit(_MOVES + "Alteration.complete", (" and not rounds.number", "")),
        MOVES,
    ),
    Mutant(
        "a partition moves twice in two rounds",
        "17, I17",
        "Nobody looks whether a request names a partition twice.",
        _edit(
            _MOVES + "_repeated",
            ("if each.partition in numbers:", "if False:"),
        ),
    ),
    Mutant(
        "a condition is about what the first round writes",
        "9, I9",
        "What only a later round writes may have changed since the caller read it.",
        (Patch("controller.leader.resources.partitions", gives(())),),
    ),
    Mutant(
        "an elected partition needed no election",
        "9, I9",
        "An election forgets what its earlier rounds found.",
        _edit(
            _ELECTIONS + "NamedElection.complete",
            (
                "known = iter(self._known)",
                "known = iter([_NOT_NEEDED] * len(self._known))",
            ),
        ),
        MOVES,
    ),
    Mutant(
        "an election of all begins anew with each leader",
        "9, I9",
        "A leader doesn't know up to which partition its predecessor came.",
        _edit(
            _ELECTIONS + "ElectionOfAll.decide",
            ('self._rounds[-1].last if self._rounds else (b"", 0)', '(b"", 0)'),
        ),
    ),
    Mutant(
        "an election of all counts its last round",
        "9, I9",
        "The counts of the earlier rounds are left out.",
        _edit(
            _ELECTIONS + "ElectionOfAll.complete",
            ("reply.elected + sum(answer.elected for answer in self._rounds)", "reply.elected"),
        ),
    ),
    Mutant(
        "a broker hears of the last round's replicas",
        "17, I17",
        "The answers of the earlier rounds of AssignReplicasToDirs are lost.",
        _edit(
            "controller.managers.replica_directories.DirectoryManager.assign",
            ("(*rounds.earlier(), *last)", "last"),
        ),
    ),
)
