"""Mutants of signed heads: whose signature counts, what is signed, and how keys change."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives

SIGNING = (
    Mutant(
        "one signature is taken for a majority",
        "I26",
        "A head is kept and written as soon as anybody has signed it.",
        (
            Patch(
                "controller.signing.signing.HeadSigning._collect",
                edited(("len(found) > len(self._voters()) // 2", "len(found) > 0")),
            ),
            Patch(
                "controller.managers.head_keys.write_head",
                edited(("len(counting) <= len(image.quorum.voters) // 2", "not counting")),
            ),
        ),
        searched_in("cluster", "heads"),
    ),
    Mutant(
        "a head is signed with any key",
        "I26",
        "A signature counts whatever key the log names for its voter.",
        (
            Patch("controller.signing.signing.HeadSigning._is_its_key", gives(True)),
            Patch(
                "controller.managers.head_keys.counting_signatures",
                edited(
                    (
                        (
                            "key is None or key.public_key != each.public_key or "
                            "each.controller_id in found"
                        ),
                        "each.controller_id in found",
                    )
                ),
            ),
        ),
        searched_in("cluster", "heads"),
    ),
    Mutant(
        "a key is replaced without the key before",
        "I26",
        "Whoever says that a controller has another key is believed.",
        (
            Patch(
                "controller.signing.head_records.rotate_key",
                edited(
                    (
                        "if not NoteKey(origin, present.public_key).verifies(text, old_signature):",
                        "if False:",
                    )
                ),
            ),
        ),
        searched_in("cluster", "heads"),
    ),
    Mutant(
        "a head is written although there is no news",
        "I26",
        "The record of a head is a reason for the next head.",
        (
            Patch(
                "controller.signing.kept_heads.KeptHeads.unsigned",
                edited(("tree.size > covered + own_record", "tree.size > covered")),
            ),
        ),
        searched_in("cluster", "heads"),
    ),
    Mutant(
        "a root is signed that a peer told",
        "I26",
        "A controller signs what it is asked to, and computes nothing.",
        (
            Patch(
                "controller.signing.signing.HeadSigning._root",
                edited(
                    (
                        "return tree.root(size)",
                        (
                            "return next((one.root for one in self._signatures.values() "
                            "if one.size == size), tree.root(size))"
                        ),
                    )
                ),
            ),
        ),
        searched_in("cluster", "heads"),
    ),
    Mutant(
        "a controller with another history goes on signing",
        "I26",
        "What a majority signed is not compared with the own log.",
        (
            Patch(
                "controller.signing.kept_heads.KeptHeads.holds",
                edited(
                    (
                        "self._remembered is None:\n        return not self.contradiction",
                        "self._remembered is None:\n        return True",
                    ),
                    (
                        "self._suspected = None, False\n    return not self.contradiction",
                        "self._suspected = None, False\n    return True",
                    ),
                ),
            ),
        ),
        searched_in("cluster", "heads"),
    ),
)
