"""`python -m benchmarks` runs every measurement, one after another, and prints a table.

--only NAME   run only this measurement (may be repeated); see --help for the names
--quick       run one short round of each, to see that it works; the figures mean nothing
--json FILE   also write every round of every figure
--markdown    also print the table in Markdown
"""

import argparse
import importlib
import os
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from rich.console import Console

from benchmarks.instruments.bench import Bench
from benchmarks.instruments.figures import Figure, describe_run, markdown, show

PIECES = {
    "propose": "quorum.propose",
    "topics": "http.topics",
    "http_requests": "http.requests",
    "chatter": "quorum.chatter",
    "publish": "http.publish",
    "replay": "image.replay",
    "audit_core": "audit.core",
    "restart": "quorum.restart",
    "failover": "quorum.failover",
    "stalls": "http.stalls",
    "overload": "http.overload",
}
"""The module of each measurement, in the order in which they run."""


def main() -> int:
    """Run what is asked for; exit 1 when a target is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure Logberg beside this machine's floor."
    )
    parser.add_argument(
        "--only", action="append", choices=PIECES, metavar="NAME", help=", ".join(PIECES)
    )
    parser.add_argument("--quick", action="store_true", help="one short round each")
    parser.add_argument("--verbose", action="store_true", help="print each round and trial")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round to FILE")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    parser.add_argument("--markdown", action="store_true", help="print the table for a page too")
    arguments = parser.parse_args()
    # As an installed package has: without bytecode a start compiles every module anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    load, started = os.getloadavg(), time.monotonic()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="logberg-bench-", dir=arguments.folder) as folder:
        bench = Bench(Path(folder), quick=arguments.quick, verbose=arguments.verbose)
        for name, module in PIECES.items():
            if arguments.only and name not in arguments.only:
                continue
            print(f"{name} …", file=sys.stderr, flush=True)
            figures += importlib.import_module(f"benchmarks.{module}").run(bench)
    run = describe_run(figures, load, time.monotonic() - started)
    if arguments.markdown:
        print(markdown(run))
    show(run, Console(width=None if sys.stdout.isatty() else 150))
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
    return 1 if any(figure.met is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
