"""Randomness for the cores: one `random.Random`, passed in by the constructor.

Rule: no code uses the module-wide generator, so a seed determines a whole run. The generator
chooses time-outs, placements and identifiers. Secrets come from Python's `secrets`, never from it.
"""

import hashlib
import random

Random = random.Random

__all__ = ["Random", "from_system", "seeded"]


def seeded(*parts: int | str) -> Random:
    """Return a generator that the parts determine, the same on every platform.

    `seeded(seed, "node", 3)` and `seeded(seed, "network")` are independent: if one draws more
    numbers, the other still draws the same ones.
    """
    text = "\x00".join(f"{type(part).__name__}:{part}" for part in parts)
    return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))


def from_system() -> Random:
    """Return a generator with a seed from the operating system, another one each time."""
    return random.Random()
