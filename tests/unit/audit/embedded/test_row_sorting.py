"""Rows are sorted outside of memory, and come out as `sorted` would give them."""

import errno
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from audit.embedded import job_rows
from audit.embedded.row_sorting import sorted_rows
from audit.generated import write_history
from audit.places.replicas import open_all

RUN = 500


class Sorted(NamedTuple):
    name: str
    number: int
    brokers: tuple[int, ...]
    leader: int | None


def rows(count: int) -> list[Sorted]:
    dice = random.Random(count)
    return [
        Sorted(f"t{dice.randrange(9)}", number, (1, dice.randrange(9)), dice.choice((None, 2)))
        for number in dice.sample(range(count), count)
    ]


@pytest.mark.parametrize("count", [0, 1, RUN - 1, RUN, RUN + 1, 20 * RUN, 20 * RUN + 7])
def test_any_number_of_rows(count: int) -> None:
    given = rows(count)
    key = itemgetter(0, 1)
    found = list(sorted_rows(given, Sorted, key, run=RUN))
    assert found == sorted(given, key=key)
    assert all(type(one) is Sorted and type(one.brokers) is tuple for one in found)


def test_rows_of_equal_keys_stay_in_their_order() -> None:
    given = rows(5 * RUN)
    found = list(sorted_rows(given, Sorted, itemgetter(0), run=RUN))
    assert found == sorted(given, key=itemgetter(0))


@pytest.mark.parametrize("job", ["partition_events", "partition_intervals"])
def test_a_job_gives_the_same_rows_with_small_runs(
    job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = write_history(tmp_path, records=2_000, seed=5)
    replicas = open_all([str(history.nodes[0])])
    wanted = list(job_rows(job, replicas))

    def in_small_runs(given: Iterable[Any], kind: Any, key: Any) -> Iterator[Any]:
        return sorted_rows(given, kind, key, run=100)

    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules[f"audit.embedded.{job}"], "sorted_rows", in_small_runs)
    assert list(job_rows(job, replicas)) == wanted
    assert len(wanted) > 1_000


def test_a_full_disk_is_told_with_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None: ...

        def write(self, _: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    with pytest.raises(OSError, match="No space left on device, where rows are sorted") as failed:
        list(sorted_rows(rows(RUN), Sorted, itemgetter(0), run=RUN))
    assert failed.value.filename == tempfile.gettempdir()
