"""Mutants of how a log begins: its first feature levels, and the name of its cluster key."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives

BEGINNING = (
    Mutant(
        "a new log begins at the lowest levels",
        "15",
        "Secrets lie in the log in clear until an operator raises the level.",
        (
            Patch(
                "controller.leader.first_levels.first_levels",
                edited(("SUPPORTED[name].high", "BASE[name]")),
            ),
        ),
    ),
    Mutant(
        "a new log begins above what a voter supports",
        "15",
        "The first leader looks only at the levels that its own build supports.",
        (
            Patch(
                "controller.leader.first_levels.first_levels",
                edited(("min(high, levels_of(ranges, name).high)", "high")),
            ),
        ),
    ),
    Mutant(
        "a new log does not wait for a silent voter",
        "15",
        "The first leader takes whoever has not been heard for a voter that supports everything.",
        (
            Patch(
                "controller.leader.first_levels.FirstLevels._look",
                edited(("sorted(needed - set(heard))", "[]")),
            ),
        ),
    ),
    Mutant(
        "an old announcement counts for the first levels",
        "15",
        "A voter counts that announced itself long ago, whatever runs there now.",
        (
            Patch(
                "controller.leader.first_levels.FirstLevels._look",
                edited(("if at >= since", "if at or since")),
            ),
        ),
    ),
    Mutant(
        "a controller with another cluster key leads",
        "S4",
        "Nobody compares the key with the one that the log names.",
        (
            Patch(
                "controller.leader.cluster_key_check.wrong_key",
                edited(("if key is None or", "if True or")),
            ),
        ),
        searched_in("cluster", "clients"),
    ),
    Mutant(
        "a secret is sealed under another key than the named one",
        "S4",
        "The first credential is asked, and the name in the log is not.",
        (
            Patch(
                "controller.managers.sealing_key._key_in_use",
                edited(("if named is not None or first is None:", "if first is None:")),
            ),
        ),
    ),
    Mutant(
        "the log does not name the cluster key",
        "S4",
        "A wrong key is found only where something sealed is there to compare.",
        (Patch("controller.leader.cluster_key_check.naming_records", gives(())),),
    ),
    Mutant(
        "a leader with another key puts its own name into the log",
        "S4",
        "Whoever leads names its key, whatever the log's credentials were sealed under.",
        (
            Patch(
                "controller.leader.cluster_key_check.naming_records",
                edited(("if _key_in_use(image) in (None, key.id) else ()", "")),
            ),
        ),
    ),
    Mutant(
        "force is left out of a digest",
        "3",
        "A retry with another force gets the answer of the first request.",
        (
            Patch("controller.http.change_routes.with_force", gives(b"")),
            Patch("controller.http.clients.controllers.with_force", gives(b"")),
        ),
    ),
)
