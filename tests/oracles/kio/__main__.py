"""Compare our codec with kio's: every served api, every version. `make oracle` runs this, too.

    python -m tests.oracles.kio [--draws 300] [--seed 1]

Rule: the exit code is 1 if the two differ anywhere. What kio doesn't have is listed.
"""

import argparse
import sys
from collections import defaultdict
from random import Random

from tests.oracles.kio.comparing import difference, drawn
from tests.oracles.kio.served import all_pairs


def main() -> int:
    """Compare; print what differs and what kio lacks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles.kio")
    parser.add_argument("--draws", type=int, default=300, help="messages of each kind and version")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    wrong, messages, compared = 0, 0, 0
    lacking: dict[str, list[int]] = defaultdict(list)
    for pair in all_pairs():
        if pair.kios is None:
            lacking[pair.name].append(pair.version)
            continue
        compared += 1
        random = Random(f"{asked.seed} {pair.name} {pair.version}")
        for _ in range(asked.draws):
            messages += 1
            why = difference(pair, drawn(random, pair))
            if why:
                wrong += 1
                print(f"{pair.name} {pair.version}: {why}")
                break
    for name, versions in sorted(lacking.items()):
        print(f"kio lacks {name} {', '.join(map(str, versions))}")
    print(f"{messages} messages of {compared} kinds and versions, {wrong} kinds differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
