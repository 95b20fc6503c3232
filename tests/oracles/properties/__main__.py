"""Compare how we read files of properties with Java: `make oracle` runs this, too.

Rule: the exit code is 1 if any answer differs. `--keep` writes the table anew.
"""

import argparse
import shutil
import subprocess
import sys
from random import Random

from tests.oracles.properties import JAVA, TABLE
from tests.oracles.properties.cases import FIXED, answer, draw, may_differ

_KEPT = 600


def main() -> int:
    """Compare; print what was counted; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles.properties")
    parser.add_argument("--states", type=int, default=100_000, help="how many to compare")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help=f"write {TABLE.name} anew")
    asked = parser.parse_args()
    java = shutil.which("java")
    if java is None:
        sys.stderr.write("there is no java here; install a JDK 17 or later\n")
        return 1
    dice = Random(asked.seed)
    drawn = (draw(dice) for _ in range(min(asked.states, 200_000)))
    contents = [*FIXED, *(content for content in drawn if not may_differ(content))]
    done = subprocess.run(
        [java, str(JAVA)],
        input="".join(f"{content.hex()}\n" for content in contents),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = done.stdout.split("\n")[: len(contents)]
    wrong = [
        (content, found)
        for content, found in zip(contents, answers, strict=True)
        if answer(content) != found
    ]
    for content, found in wrong[:20]:
        print(f"{content!r}\n  Java  {found}\n  ours  {answer(content)}")
    refused = answers.count("refused")
    print(f"{len(contents)} files of properties, {refused} refused, {len(wrong)} differ")
    if asked.keep:
        kept = zip(contents[:_KEPT], answers[:_KEPT], strict=True)
        TABLE.write_text("".join(f"{content.hex()}|{found}\n" for content, found in kept))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
