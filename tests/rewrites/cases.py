"""The attacks of the table."""

from typing import NamedTuple

KEPT = 40
"""Batches under the newest head that was kept outside, when the attack begins."""
COUNT = 50
"""Batches of the true log."""


class Attack(NamedTuple):
    """What an attacker has, and what history they want to have been."""

    name: str
    rewritten: int = 0
    """The files of so many controllers are rewritten; the keys in these folders are theirs, too."""
    stolen: int = 0
    """So many further keys are stolen; the files of these controllers are as they were."""
    leads: bool = False
    """Controller 1 is in the attacker's hands while it leads, with its key. Its files are not
    rewritten: it tells brokers and witnesses another history."""
    claims: bool = False
    """Controller 1 says that the forged log is one of a later generation of the cluster, to brokers
    and witnesses alone: honest controllers refuse a peer of another generation."""
    at: int = 25
    """The first forged batch."""
    kept: int = KEPT
    """Batches under the newest head that anybody outside has kept; 0: nobody kept one."""

    @property
    def owned(self) -> frozenset[int]:
        """The controllers whose keys the attacker has."""
        return frozenset(range(1, self.rewritten + self.stolen + self.leads + 1))

    @property
    def liars(self) -> frozenset[int]:
        """The controllers whose log is the forged one, or who serve it."""
        return frozenset(range(1, max(self.rewritten, int(self.leads)) + 1))


ATTACKS = (
    Attack("the files of one controller are rewritten", rewritten=1),
    Attack("the files of two controllers are rewritten", rewritten=2),
    Attack("the files of all three controllers are rewritten", rewritten=3),
    Attack("one signing key is stolen", stolen=1),
    Attack("two signing keys are stolen", stolen=2),
    Attack("all three signing keys are stolen", stolen=3),
    Attack("the leader is compromised", leads=True),
    Attack("the leader is compromised, and one further key is stolen", leads=True, stolen=1),
    Attack("the leader is compromised, and all keys are stolen", leads=True, stolen=2),
    Attack("the leader is compromised, and claims another generation", leads=True, claims=True),
    Attack(
        "the leader is compromised, one further key is stolen, and it claims another generation",
        leads=True,
        stolen=1,
        claims=True,
    ),
    Attack(
        "all three are rewritten, but only batches that are newer than every kept head",
        rewritten=3,
        at=KEPT + 2,
    ),
    Attack("all three are rewritten before anybody outside kept a head", rewritten=3, kept=0),
)
