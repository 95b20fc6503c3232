"""Between Arrow and plain values: tables as one value, and columns as lists.

Rule: `to_pylist` makes an object for each value by a slow way. These functions go by numpy, and
equal texts and lists become one object.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

Ids = tuple[int, ...]
"""Ids of brokers."""


def to_ipc(rows: pa.Table) -> bytes:
    """Return a table as one value, compressed."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows.combine_chunks())
    content: bytes = sink.getvalue().to_pybytes()
    return content


def from_ipc(content: bytes) -> pa.Table:
    """Return the table of `to_ipc`."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def joined(contents: Sequence[bytes]) -> pa.Table | None:
    """Return the rows of several values, one after the other; None without any."""
    tables = [from_ipc(content) for content in contents]
    return pa.concat_tables(tables) if tables else None


def ints(column: pa.ChunkedArray, missing: int = -1) -> list[int]:
    """Return a column of numbers as a list; null becomes `missing`."""
    found: list[int] = pc.fill_null(column, missing).to_numpy().tolist()
    return found


def ints_or_none(column: pa.ChunkedArray) -> list[int | None]:
    """Return a column of numbers as a list."""
    there = column.is_valid().to_numpy().tolist()
    pairs = zip(ints(column), there, strict=True)
    return [value if is_there else None for value, is_there in pairs]


def texts(column: pa.ChunkedArray, missing: str = "") -> list[str]:
    """Return a column of text as a list; null becomes `missing`."""
    encoded = column.combine_chunks().dictionary_encode()
    words = [*encoded.dictionary.to_pylist(), missing]
    return [words[place] for place in pc.fill_null(encoded.indices, -1).to_numpy().tolist()]


def lists(column: pa.ChunkedArray) -> list[Ids | None]:
    """Return a column of lists of numbers as tuples; equal ones are one object."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    values = array.values.to_numpy().tolist()
    ends = array.offsets.to_numpy().tolist()
    there = array.is_valid().to_numpy(zero_copy_only=False).tolist()
    known: dict[Ids, Ids] = {}
    found: list[Ids | None] = []
    for place, is_there in enumerate(there):
        if is_there:
            ids = tuple(values[ends[place] : ends[place + 1]])
            found.append(known.setdefault(ids, ids))
        else:
            found.append(None)
    return found
