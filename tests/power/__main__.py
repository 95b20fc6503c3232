"""Cuts the power of real controllers under load, and checks that nothing acknowledged is lost.

    python -m tests.power --cuts N [--seed N] [--record FOLDER]
    python -m tests.power --cuts N --broken

`--broken` runs a build that syncs nothing. It must lose something: exit code 0 if it does.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.evidence.pieces import write_piece
from tests.power.cuts import cut_again_and_again, powered
from tests.power.mounting import NoForgettingError


def main() -> int:
    parser = argparse.ArgumentParser(description="Loss of power on real processes.")
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", action="store_true", help="with syncs that do nothing")
    parser.add_argument("--record", type=Path, help="write what was found into this folder")
    given = parser.parse_args()
    began = time.monotonic()
    failure, done, acknowledged = "", 0, 0
    with tempfile.TemporaryDirectory(prefix="power-") as folder:
        try:
            with powered(Path(folder) / "cluster", given.seed, synced=not given.broken) as cluster:
                for nodes in cut_again_and_again(cluster, given.cuts, given.seed):
                    done += 1
                    acknowledged = len(cluster.acknowledged)
                    text = f"\r{done} of {given.cuts} cuts, last of {nodes}; {acknowledged:,} there"
                    print(text, end="   ", file=sys.stderr, flush=True)
        except NoForgettingError as error:
            print(f"power can't be cut here: {error}", file=sys.stderr)
            return 1
        except AssertionError as error:
            failure = str(error)
    took = time.monotonic() - began
    print(
        f"\r{done} cuts, {acknowledged:,} acknowledged, {took:.0f} s; {failure or 'nothing lost'}"
    )
    if given.record and not given.broken:
        figures = {"cuts": done, "acknowledged": acknowledged, "violations": int(bool(failure))}
        write_piece(given.record, "power cuts", figures, took)
    return int(bool(failure) != given.broken)


if __name__ == "__main__":
    sys.exit(main())
