"""The bounds of a term: how high it may be, and how far one frame may raise it.

Rule: a term stays below 2^31, as Kafka's leader epochs do (int32). A node takes no term that is
more than `LEAP_MAX` above the one it started with; `quorum.guard.ceiling` says how that limit
moves. No honest cluster holds so many elections, so only a forged frame is refused.
"""

TERM_MAX = 2**31 - 1
"""The last term. No election is begun in it, since the next term does not exist."""
LEAP_MAX = 2**20
"""How far a voter's frames may raise a term at once: twelve days of an election each second."""


def leap_from(term: int) -> int:
    """Return how far above `term` a voter's frames may lead.

    Never more than half of the terms that are left, so that forged frames can't use them up.
    """
    return min(LEAP_MAX, (TERM_MAX - term) // 2)


def is_term(value: int) -> bool:
    """Tell whether a number can be a term."""
    return 0 <= value <= TERM_MAX
