"""`python -m benchmarks.image.colliding` measures maps whose keys an attacker chose to collide.

There is a map of 4,000 names and one of 4,000 ids, each once with ordinary keys and once with
chosen keys. The chosen keys would all lie in one bucket under crc32, the earlier hash without a
secret. The benchmark makes single changes to the maps in turns, in one process. It prints changes
per second and their ratio, ordinary to chosen, and exits 1 above 1.5. `--unkeyed` uses crc32 again,
for comparison.
"""

import argparse
import random
import secrets
import sys
import time
from collections.abc import Callable
from itertools import count, islice
from typing import Any
from zlib import crc32

from metadata.bucket_hash import SECRET_BYTES, MixFor, key_buckets, mix_bytes, mix_text
from metadata.buckets import BucketMap

HELD = 4_000
CHANGES = 5_000
ROUNDS = 4
BUCKETS = 512
"""Of a map of so many entries."""
LIMIT = 1.5


def chosen(make: Callable[[int], Any], bucket_of: Callable[[Any], int]) -> list[Any]:
    """Keys that all lie in one bucket of the unkeyed hash; found by trying."""
    found = (key for key in map(make, count()) if bucket_of(key) % BUCKETS == 0)
    return list(islice(found, HELD))


def changes_per_s(held: BucketMap[Any, int], keys: list[Any], dice: random.Random) -> float:
    """Lone changes, one after another."""
    started = time.process_time()
    for number in range(CHANGES):
        held = held.with_changes({dice.choice(keys): number})
    return CHANGES / (time.process_time() - started)


def measure(name: str, kind: MixFor, ordinary: list[Any], colliding: list[Any]) -> float:
    """Print the line of one kind of key, and return the ratio."""
    maps = [BucketMap(kind, dict.fromkeys(keys, 0)) for keys in (ordinary, colliding)]
    best = [0.0, 0.0]
    for _ in range(ROUNDS):
        for number, keys in enumerate((ordinary, colliding)):
            rate = changes_per_s(maps[number], keys, random.Random(1))
            best[number] = max(best[number], rate)
    ratio = best[0] / best[1]
    print(f"{name:<12}{best[0]:>12,.0f}/s{best[1]:>12,.0f}/s{ratio:>8.2f}")
    return ratio


def main() -> int:
    """Measure; exit 1 when chosen keys cost too much."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.image.colliding", description=__doc__
    )
    parser.add_argument("--unkeyed", action="store_true", help="with crc32, as it was")
    unkeyed = parser.parse_args().unkeyed
    key_buckets(secrets.token_bytes(SECRET_BYTES))
    texts: MixFor = (lambda _: lambda key: crc32(key.encode())) if unkeyed else mix_text
    ids: MixFor = (lambda _: crc32) if unkeyed else mix_bytes
    dice = random.Random(7)
    print(f"{'':<12}{'ordinary':>14}{'chosen':>14}{'ratio':>8}")
    worst = max(
        measure(
            "names",
            texts,
            [f"topic-{number}" for number in range(HELD)],
            chosen(lambda n: f"topic-{n}", lambda name: crc32(name.encode())),
        ),
        measure(
            "request ids",
            ids,
            [dice.randbytes(16) for _ in range(HELD)],
            chosen(lambda _: dice.randbytes(16), crc32),
        ),
    )
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
