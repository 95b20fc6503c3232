"""Mutants of feature levels: which nodes must support a level, and what it allows to be written."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives, instead

RELEASES = searched_in("cluster", "releases")

NOBODY_IS_SILENT = Patch(
    "controller.leader.self_registration.SelfRegistration._who_is_silent", gives("")
)

LEVELLING = (
    Mutant(
        "a voter that went back is taken for new",
        "15",
        "A registration counts, whatever runs now.",
        (NOBODY_IS_SILENT,),
    ),
    Mutant(
        "levels begin before every voter has registered",
        "15",
        "A leader of 0.1 may come, which refuses its own agents. Guarded twice: both are off.",
        (Patch("controller.managers.features._who_is_missing", gives("")), NOBODY_IS_SILENT),
        RELEASES,
    ),
    Mutant(
        "a level that a node does not support",
        "15",
        "Nobody asks what the registered nodes support.",
        (
            Patch(
                "controller.managers.features.objections", instead(lambda image, wanted: iter(()))
            ),
        ),
        RELEASES,
    ),
    Mutant(
        "announcements are not heard",
        "15",
        "Only the leader registers itself.",
        (
            Patch(
                "controller.leader.self_registration.SelfRegistration.on_announcement", gives(None)
            ),
        ),
        RELEASES,
    ),
    Mutant(
        "no gate",
        "15",
        "Records are written whatever level is finalised.",
        (
            Patch(
                "controller.managers.level_gate.LevelGate.check",
                edited(("if needs is not None", "if False")),
            ),
        ),
    ),
    Mutant(
        "a node registers another one",
        "15",
        "What a link says is not held against whose link it is.",
        (
            Patch(
                "controller.leader.self_registration.SelfRegistration.on_announcement",
                edited((" or record.controller_id != node_id", "")),
            ),
        ),
    ),
    Mutant(
        "an unknown level is read over",
        "15",
        "A build goes on behind a level whose rules it does not know.",
        (Patch("metadata.image.features.unknown_level", gives("")),),
    ),
    Mutant(
        "a loaded checkpoint is compared too late",
        "2",
        "A batch of another history is replayed before anybody looks at its hash.",
        (
            Patch(
                "controller.replica.applier.Applier._apply",
                edited(("if not reason and self._meeting is not None", "if False")),
            ),
        ),
    ),
)
