"""Fuzz targets: `make fuzz TARGET=records SECONDS=60`; without a target, each for so many seconds.

With atheris (libFuzzer) half of the inputs follow the coverage of our code, and half are damaged
seeds; its corpus lies in `.fuzz/` and grows over runs. Without it Hypothesis draws damaged seeds. A
finding ends the run with exit code 1, and its input is written to `tests/fuzz/found/TARGET/`, where
the tests read it from then on.
"""

import argparse
import importlib
import importlib.util
import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.target import FuzzTarget

ROOT = Path(__file__).resolve().parents[2]
FOUND = Path(__file__).with_name("found")
OURS = [
    *("logberg", "audit", "controller", "kafka_listener", "snapshots", "ledger", "metadata"),
    *("quorum", "runtime", "verifier", "coordination"),
]
INPUT_BYTES_MAX = 16 * 1024
"""Longer inputs find little more and take much longer. A target with longer seeds has a larger
limit."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help="a target's name; none: all, one by one")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--engine", choices=("atheris", "hypothesis"))
    parser.add_argument("--corpus", type=Path, default=ROOT / ".fuzz")
    parser.add_argument("--list", action="store_true", help="only list the targets")
    options = parser.parse_args(arguments)
    has_atheris = importlib.util.find_spec("atheris") is not None
    engine = options.engine or ("atheris" if has_atheris else "hypothesis")
    if engine == "atheris" and not has_atheris:
        sys.stderr.write(
            "atheris is not installed, or doesn't run on this Python: leave out --engine\n"
        )
        return 2
    if len(options.target) == 1 and not options.list:
        return one(options.target[0], engine, options.seconds, options.corpus)
    targets = importlib.import_module("tests.fuzz.table").TARGETS
    if options.list:
        sys.stdout.writelines(f"{one.name:18} {one.reads}\n" for one in targets.values())
        return 0
    # Each in a process of its own: atheris instruments a process once, and ends it itself.
    again = ["--engine", engine, "--seconds", str(options.seconds), "--corpus", str(options.corpus)]
    codes = [
        subprocess.run(
            [sys.executable, "-m", "tests.fuzz", name, *again], cwd=ROOT, check=False
        ).returncode
        for name in options.target or targets
    ]
    return max(codes)


def one(name: str, engine: str, seconds: int, corpus: Path) -> int:
    """Fuzz one target; return the exit code."""
    if engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=OURS):
            targets = importlib.import_module("tests.fuzz.table").TARGETS
    else:
        targets = importlib.import_module("tests.fuzz.table").TARGETS
    if name not in targets:
        sys.stderr.write(f"there is no target {name!r}; --list shows all\n")
        return 2
    print(f"{name}: {engine}, {seconds} s", flush=True)
    if engine == "atheris":
        with_atheris(targets[name], seconds, corpus / name)
        return 0
    return with_hypothesis(targets[name], seconds)


def with_atheris(target: "FuzzTarget", seconds: int, corpus: Path) -> None:
    """Run libFuzzer on the target. Ends the process."""
    from random import Random

    import atheris

    from tests.fuzz.damage import damaged_at_random

    corpus.mkdir(parents=True, exist_ok=True)
    seeds = target.seeds()
    for seed in seeds:
        (corpus / f"seed-{sha256(seed).hexdigest()[:16]}").write_bytes(seed)

    def feed(data: bytes) -> None:
        try:
            target.feed(data)
        except BaseException:
            keep(target, data)
            raise

    def mutate(data: bytes, most: int, number: int) -> bytes:
        random = Random(number)
        if random.getrandbits(1):
            return damaged_at_random(seeds, random)[:most]
        return bytes(atheris.Mutate(data, most))

    options = [
        f"-max_total_time={seconds}",
        f"-max_len={max(INPUT_BYTES_MAX, 2 * max(map(len, seeds)))}",
        "-len_control=0",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        "-reload=0",
        f"-artifact_prefix={corpus.parent}/{target.name}-",
    ]
    arguments = [sys.argv[0], *options, str(corpus)]
    atheris.Setup(arguments, feed, custom_mutator=mutate)
    atheris.Fuzz()


def with_hypothesis(target: "FuzzTarget", seconds: int) -> int:
    """Let Hypothesis draw inputs for so long; return the exit code."""
    from hypothesis import HealthCheck, given, settings

    from tests.fuzz.damage import damaged

    begun, count, accepted = time.monotonic(), [0], [0]

    @settings(
        max_examples=500,
        deadline=None,
        database=None,
        derandomize=False,  # CI's profile would draw the same inputs again and again
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged(target.seeds()))
    def batch(data: bytes) -> None:
        count[0] += 1
        accepted[0] += target.accepts(data)
        try:
            target.feed(data)
        except BaseException:
            last[:] = [data]
            raise

    last: list[bytes] = []
    while time.monotonic() < begun + seconds:
        try:
            batch()
        except Exception:
            # Hypothesis ends with the smallest input that fails.
            keep(target, last[0])
            raise
    a_second = count[0] / max(time.monotonic() - begun, 0.001)
    print(
        f"{target.name}: {count[0]} inputs, {a_second:.0f} a second, {accepted[0]} of them "
        "accepted, nothing found"
    )
    return 0


def keep(target: "FuzzTarget", data: bytes) -> None:
    """Write down an input that broke the target."""
    folder = FOUND / target.name
    folder.mkdir(parents=True, exist_ok=True)
    name = folder / f"{sha256(data).hexdigest()[:16]}.bin"
    name.write_bytes(data)
    sys.stderr.write(f"found: {os.path.relpath(name, ROOT)}\n")


if __name__ == "__main__":
    sys.exit(main())
