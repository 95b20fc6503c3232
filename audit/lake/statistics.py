"""Statistics of a file, in the form in which Delta's commits hold them.

Rule: they are taken from the Parquet file's own footer, so they can't disagree with it. A reader
that looks for a day or an offset skips a file whose least and greatest value exclude it. Every
column has a range, but lists and bytes: delta-rs reads a missing range as "no row fits" and loses
rows (tests/unit/audit/lake/test_reading.py shows it). Long text is cut, and a cut greatest value
ends with the greatest character, so it is still above all values. A footer has no range for text of
more than 4,096 bytes; then the range is that of all texts.
"""

import datetime as dt
from typing import Any, Final

import msgspec

_TEXT_SHOWN: Final = 32
_GREATEST: Final = "\U0010ffff"


def statistics_of(footer: Any) -> str:
    """Return the statistics of a Parquet footer (`pyarrow.parquet.FileMetaData`) as JSON."""
    least: dict[str, object] = {}
    greatest: dict[str, object] = {}
    nulls: dict[str, int] = {}
    for place in range(footer.num_columns):
        name = footer.schema.column(place).path
        if "." in name:
            continue
        groups = [footer.row_group(i).column(place) for i in range(footer.num_row_groups)]
        known = [group.statistics for group in groups if group.is_stats_set]
        if len(known) != len(groups):
            continue
        nulls[name] = sum(statistics.null_count for statistics in known)
        ranges = [each for each in known if each.num_values]
        if ranges and all(each.has_min_max for each in ranges):
            low, high = min(each.min for each in ranges), max(each.max for each in ranges)
            if not isinstance(low, bytes):
                least[name], greatest[name] = _shown(low, ""), _shown(high, _GREATEST)
        elif ranges and footer.schema.column(place).logical_type.type == "STRING":
            least[name], greatest[name] = "", _GREATEST
    said = {
        "numRecords": footer.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }
    return msgspec.json.encode(said).decode()


def _shown(value: object, after_cut: str) -> object:
    """Return a value as a commit shows it."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT_SHOWN else value[:_TEXT_SHOWN] + after_cut
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, dt.date):
        return value.isoformat()
    return value
