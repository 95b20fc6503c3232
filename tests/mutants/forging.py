"""Mutants of the quorum: which nodes it trusts, and how far a forged number reaches."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives, instead

NO_CEILING = Patch("quorum.guard.ceiling.Ceiling.admits", gives(True))

FORGING = (
    Mutant(
        "a non-voter's term counts",
        "7, 9",
        "A higher term makes a node step down, whoever says it.",
        (
            Patch(
                "quorum.peers.dispatch.Dispatch.take",
                edited(
                    ("term > core.term and replica.is_voter and kind", "term > core.term and kind")
                ),
            ),
        ),
        searched_in("quorum", "forged"),
    ),
    Mutant(
        "a voter's term has no ceiling",
        "9",
        "One frame of a voter raises the term to the last one.",
        (NO_CEILING,),
        searched_in("quorum", "forged"),
    ),
    Mutant(
        "terms have no end",
        "9",
        "A frame may name any term. Guarded twice: both are off.",
        (
            NO_CEILING,
            Patch("quorum.wire.frames.is_term", instead(lambda term: term >= 0)),
            Patch("quorum.raft.core.is_term", instead(lambda term: term >= 0)),
        ),
        searched_in("quorum", "forged"),
    ),
    Mutant(
        "the ceiling never rises",
        "9",
        "Voters that were misled unequally far never hear each other again.",
        (Patch("quorum.guard.ceiling.Ceiling.on_tick", gives(None)),),
        searched_in("quorum", "forged"),
    ),
    Mutant(
        "an election behind the last term",
        "9",
        "A node in the last term stands for the next one, which does not exist.",
        (Patch("quorum.guard.elections.Elections._no_term_is_left", gives(False)),),
    ),
    Mutant(
        "a journal in an impossible epoch is opened",
        "9",
        "What an earlier release took from a forged frame is gone on with.",
        (Patch("quorum.journal.opening.is_term", gives(True)),),
    ),
    Mutant(
        "a manifest is what has its checksum",
        "6, 9",
        "Entries of a peer's manifest may be of any index and any term.",
        (Patch("quorum.journal.manifest._contradiction", gives("")),),
    ),
    Mutant(
        "a number in a frame may be anything",
        "9",
        "Indexes, positions and lengths are taken as they come.",
        (
            Patch(
                "quorum.wire.frames.decode",
                edited(
                    (
                        "not least <= frame[place] < _INDEX_MAX",
                        "False",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "a non-voter's age counts",
        "2, 10",
        "A node takes itself for current because a fresh directory says so.",
        (
            Patch(
                "quorum.guard.freshness.DeliveryFreshness.heard",
                edited(("if not replica.is_voter:", "if False:")),
            ),
            Patch(
                "quorum.guard.freshness.DeliveryFreshness._wait_for",
                edited(("core is None or core.leader != replica.node", "core is None")),
            ),
        ),
    ),
    Mutant(
        "what a false leader said holds the age up",
        "2, 10",
        "An index that was never reached stands before all that is said later.",
        (
            Patch(
                "quorum.guard.freshness.DeliveryFreshness._wait_for",
                edited(("waiting[0].term != term", "False")),
            ),
        ),
    ),
    Mutant(
        "a non-voter judges the state of voters",
        "6, 10",
        "The digest of a fresh directory is held against what voters hold.",
        (
            Patch(
                "quorum.peers.dispatch.Dispatch._take_digest",
                edited((", replica.is_voter)", ", True)")),
            ),
        ),
    ),
    Mutant(
        "an answer to no question is read",
        "9",
        "Anybody may have 16 MiB decoded at any time.",
        (Patch("quorum.peers.files.FileExchange.awaits", gives(True)),),
    ),
    Mutant(
        "a formation may hold anything",
        "9",
        "A peer names a number where a directory stands: so many zeros are made.",
        (
            Patch(
                "quorum.membership.formation.decode_formation",
                edited(
                    ("pinned = dict(members)", "pinned = {int(n): bytes(d) for n, d in members}")
                ),
            ),
        ),
    ),
)
