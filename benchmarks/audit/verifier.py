"""Measures how fast the independent verifier reads.

`python -m benchmarks.audit.verifier [RECORDS]`. It uses one core, plain Python and hashlib. It also
measures the CRC alone and SHA-256 alone on the same bytes. The CRC is the verifier's own code, so
its time is what `--skip-crc` saves.
"""

import hashlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from audit.generated import write_history
from verifier.logberg_verify import Options, crc32c, verify

RECORDS = 200_000
REPEATS = 3


def best_s(work: Callable[[], object]) -> float:
    """The least of some times in CPU seconds: what others on the machine take isn't counted."""
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def main(count: int) -> None:
    with TemporaryDirectory() as folder:
        history = write_history(Path(folder), records=count, checkpoint_every=0)
        node = history.nodes[0]
        data = b"".join(path.read_bytes() for path in sorted((node / "log").iterdir()))
        size = len(data) / 1e6
        print(f"{history.log_end} records in {history.batches} batches, {size:.1f} MB")
        for name, work in (
            ("verify", lambda: verify([node], Options())),
            ("verify --skip-crc", lambda: verify([node], Options(skip_crc=True))),
            ("its CRC-32C alone", lambda: crc32c(data)),
            ("SHA-256 alone", lambda: hashlib.sha256(data).digest()),
        ):
            taken = best_s(work)
            print(f"{name:18} {size / taken:8.1f} MB/s {history.log_end / taken:12,.0f} records/s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
