"""The ready queries, read from the SQL files beside this module.

Rule: a file begins with comments: what it is about (`-- who`), what it answers (one sentence), and
a line for each parameter, `-- $name=default: meaning`. The file's name is the query's.
"""

import re
from functools import lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from audit.tables import KEPT

SUBJECTS: Final = ("who", "when", "availability", "drift", "access")
"""What queries are about, in the order of the docs."""
VIEWS: Final = {path.rpartition("/")[2]: path for path in KEPT}
"""By the name that queries use: the path of the kept table."""
_PARAMETER: Final = re.compile(r"-- \$(\w+)=(.*?): (.*)")
_READS: Final = re.compile(r"(?:FROM|JOIN)\s+(\w+)")


class QueryParameter(NamedTuple):
    """What a query asks for."""

    name: str
    default: str
    meaning: str


class ReadyQuery(NamedTuple):
    """A query of the catalogue."""

    name: str
    subject: str
    """One of `SUBJECTS`."""
    sentence: str
    """What it answers."""
    parameters: tuple[QueryParameter, ...]
    sql: str
    """Without the comments at its head."""

    def tables(self) -> list[str]:
        """Return the names of the kept tables that it reads."""
        read = set(_READS.findall(self.sql))
        return [name for name in VIEWS if name in read]


@lru_cache(maxsize=1)
def ready_queries() -> dict[str, ReadyQuery]:
    """Return the catalogue by name, ordered by subject and name."""
    assert __package__ is not None
    found = [
        _read(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
        for file in files(__package__).iterdir()
        if file.name.endswith(".sql")
    ]
    found.sort(key=lambda query: (SUBJECTS.index(query.subject), query.name))
    return {query.name: query for query in found}


def _read(name: str, text: str) -> ReadyQuery:
    lines = text.splitlines()
    head = [line for line in lines if line.startswith("-- ")]
    sql = "\n".join(lines[len(head) :])
    subject, sentence = head[0].removeprefix("-- "), head[1].removeprefix("-- ")
    parameters = []
    for line in head[2:]:
        found = _PARAMETER.fullmatch(line)
        assert found is not None, f"{name}.sql: {line}"
        parameters.append(QueryParameter(*found.groups()))
    return ReadyQuery(name, subject, sentence, tuple(parameters), sql)
