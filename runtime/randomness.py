"""Randomness for the cores: one `random.Random`, passed in by the constructor.

Rule: no code uses the module-wide generator, so a seed determines a whole run. The generator
chooses time-outs, placements and identifiers. It never makes secrets (those come from `secrets`).
"""

import hashlib
import random

Random = random.Random

__all__ = ["Random", "from_system", "seeded"]


def seeded(*parts: int | str) -> Random:
    """Return dice that the parts determine: equal parts give equal throws, on every platform.

    `seeded(seed, "node", 3)` and `seeded(seed, "network")` are independent, so a part that draws
    more often does not disturb the others.
    """
    text = "\x00".join(f"{type(part).__name__}:{part}" for part in parts)
    return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))


def from_system() -> Random:
    """Return dice seeded by the operating system: no two processes throw alike."""
    return random.Random()
