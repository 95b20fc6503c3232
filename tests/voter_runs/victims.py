"""Which controller may be killed while the voters change.

Rule: a change is in force when it is appended, and undone if it is cut. So a majority of the set
before and a majority of the set after must both survive the kill.

Example: while {1, 2} become {1, 2, 3}, only 3 or an observer may be killed.
"""

from collections.abc import Iterable


def may_be_killed(before: set[int], after: set[int], running: Iterable[int]) -> list[int]:
    """Return the controllers without any one of which nothing stops."""
    return [n for n in sorted(running) if _survives(before, n) and _survives(after, n)]


def _survives(voters: set[int], victim: int) -> bool:
    return len(voters - {victim}) > len(voters) // 2
