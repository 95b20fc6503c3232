"""Mutants of the recovery of a lost majority, and of what brokers keep of what was lost."""

from tests.mutants.mutant import Mutant
from tests.mutants.patches import Patch, edited, gives

RECOVERING = (
    Mutant(
        "a node of an earlier generation is let in",
        "1, 2",
        "Formations are compared by their voters alone, so an old folder links with new ones.",
        (Patch("quorum.membership.formation.Formation.differs", gives(False)),),
    ),
    Mutant(
        "the shorter log is chosen",
        "1",
        "A recovery begins from whatever folder was named first, not from the most complete.",
        (Patch("logberg.recovery.choosing.completeness", gives((0,))),),
    ),
    Mutant(
        "a new generation uses the epochs of the old one again",
        "1, 2",
        "What lost nodes wrote in an epoch looks like what is written in it now.",
        (
            Patch(
                "quorum.recovery.generation.epoch_of_next",
                edited(("return highest + EPOCH_GAP + ", "return highest + ")),
            ),
        ),
    ),
    Mutant(
        "a recovery takes the ledger for all",
        "1",
        "The batches of the journal, which may be acknowledged, are left behind.",
        (Patch("logberg.recovery.survivors._continued", gives(())),),
    ),
    Mutant(
        "a broker forgets what the cluster lost",
        "4",
        "A broker that saw more than survived drops its image, and keeps nothing of it.",
        (Patch("broker_agent.evidence.Evidence.keep", gives(False)),),
    ),
)
