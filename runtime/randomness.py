"""Randomness for the cores: one `random.Random`, passed in by the constructor.

Rule: no code uses the module-wide generator, so a seed determines a whole run of a simulation. The
generator chooses time-outs, placements, identifiers, nonces and salts. A process gets the generator
of the system, so nobody can foresee what it draws from what it drew before: nonces, ids of requests
and ids of sessions go to callers. Keys, tokens and the numbers of people come from Python's
`secrets`, also where a test gives a seed to the rest.
"""

import hashlib
import random

Random = random.Random

__all__ = ["Random", "beside", "from_system", "seeded"]


def seeded(*parts: int | str) -> Random:
    """Return a generator that the parts determine, the same on every platform.

    `seeded(seed, "node", 3)` and `seeded(seed, "network")` are independent: if one draws more
    numbers, the other still draws the same ones.
    """
    text = "\x00".join(f"{type(part).__name__}:{part}" for part in parts)
    return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))


def from_system() -> Random:
    """Return the generator of the operating system, which nobody can foresee.

    `random.Random()` would not do: 624 words of what it drew show its whole state. The system takes
    about a microsecond for a number.
    """
    return random.SystemRandom()


def beside(dice: Random) -> Random:
    """Return a generator that takes no draw from this one.

    From a seeded generator it is a copy. The system's generator has no state, so it is itself.
    """
    if isinstance(dice, random.SystemRandom):
        return dice
    copied = random.Random()
    copied.setstate(dice.getstate())
    return copied
