"""The bounds of a term: the highest one, and how far one frame may raise it.

Rule: a term stays below 2^31, as Kafka's leader epochs do (int32). A node accepts no term that is
more than `LEAP_MAX` above the one it started with; `quorum.guard.ceiling` says how that limit
rises. An honest cluster never holds that many elections, so only forged frames are refused.
"""

TERM_MAX = 2**31 - 1
"""The last term. No node stands for election in it, since there is no next term."""
LEAP_MAX = 2**20
"""How far a voter's frames may raise a term at once: twelve days with an election per second."""


def leap_from(term: int) -> int:
    """Return how far above `term` a voter's frames may raise it.

    At most half of the terms that are left, so that forged frames can't use them up.
    """
    return min(LEAP_MAX, (TERM_MAX - term) // 2)


def is_term(value: int) -> bool:
    """Tell whether a number can be a term."""
    return 0 <= value <= TERM_MAX
