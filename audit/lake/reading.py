"""Reading kept tables: as Arrow datasets, which DuckDB, pandas and Polars take as they are.

Rule: a dataset is one version of a table, whole, whatever is committed meanwhile. Reading changes
nothing and needs no lock.
"""

from typing import Any, Final

from audit.lake.delta import as_dataset, check, opened
from audit.lake.place import LakeError, LakePlace
from audit.tables import KEPT

_KEEP_FIRST: Final = "Keep tables first: logberg audit run pipeline WHERE --out DIR"


def dataset(place: LakePlace, table_path: str) -> Any:
    """Return a table as a `pyarrow.dataset.Dataset`. Raises LakeError."""
    table = opened(place, table_path)
    if table is None:
        raise LakeError(f"{place.shown_table(table_path)} is not there. {_KEEP_FIRST}")
    check(place, table_path, table)
    return as_dataset(place, table_path, table)


def kept_datasets(place: LakePlace) -> dict[str, Any]:
    """Return the tables that are there, by path. Raises LakeError if there is none."""
    found = {}
    for path in KEPT:
        table = opened(place, path)
        if table is not None:
            check(place, path, table)
            found[path] = as_dataset(place, path, table)
    if not found:
        raise LakeError(f"{place.shown} holds no kept tables. {_KEEP_FIRST}")
    return found
