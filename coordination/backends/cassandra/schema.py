"""The tables in Cassandra, and the statements on them.

Rule: every statement is prepared; nothing is spliced into CQL but the keyspace, which is checked.
Every write is a lightweight transaction, so none can lose to an earlier one by its time. Only
`spaces` and `sessions` use these statements.

`spaces`: a partition holds all keys and resources of one namespace. Its `epoch` is the number of
its last change.

| kind | resource | id | row |
|---|---|---|---|
| k | | key | a key; `gone` for a while after it was removed |
| e | kind:name | id | an entry; `created` is its place, `term` its grant (the token) |
| r | | request id | a commit that was made: `modified` its number, `value` what it applied |

`sessions`: one partition for each session, so heartbeats disturb nobody. A row ends with its ttl,
or by `ended`.
"""

import re
from typing import Final

from coordination.errors import ConfigError

SPACES: Final = """
CREATE TABLE IF NOT EXISTS {keyspace}.spaces (
    space text, kind text, resource text, id blob,
    epoch bigint static,
    value blob, created bigint, modified bigint, version int, gone boolean,
    session text, term bigint, shared boolean,
    PRIMARY KEY (space, kind, resource, id))
"""
SESSIONS: Final = """
CREATE TABLE IF NOT EXISTS {keyspace}.sessions (
    session text PRIMARY KEY, beat text, ended boolean)
"""
KEYSPACE: Final = """
CREATE KEYSPACE IF NOT EXISTS {keyspace}
WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}
"""
_ROW: Final = """
SELECT kind, resource, id, value, created, modified, version, gone, session, term, shared
FROM {keyspace}.spaces WHERE space = ? AND """
STATEMENTS: Final = {
    "epoch": "SELECT DISTINCT space, epoch FROM {keyspace}.spaces WHERE space = ?",
    "all_spaces": "SELECT DISTINCT space, epoch FROM {keyspace}.spaces",
    "begin_space": "INSERT INTO {keyspace}.spaces (space, epoch) VALUES (?, 0) IF NOT EXISTS",
    "advance": "UPDATE {keyspace}.spaces SET epoch = ? WHERE space = ? IF epoch = ?",
    "whole": _ROW.removesuffix("AND "),
    "rows": _ROW + "(kind, resource, id) IN ?",
    "resource": _ROW + "kind = 'e' AND resource = ?",
    "range": _ROW + "kind = 'k' AND resource = '' AND id >= ? AND id < ?",
    "write": """
INSERT INTO {keyspace}.spaces
(space, kind, resource, id, value, created, modified, version, gone, session, term, shared)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?""",
    "remove": (
        "DELETE FROM {keyspace}.spaces WHERE space = ? AND kind = ? AND resource = ? AND id = ?"
    ),
    "begin_session": (
        "INSERT INTO {keyspace}.sessions (session, beat, ended) VALUES (?, ?, false)"
        " IF NOT EXISTS USING TTL ?"
    ),
    "renew_session": (
        "UPDATE {keyspace}.sessions USING TTL ? SET beat = ?, ended = false"
        " WHERE session = ? IF ended = false"
    ),
    "see_session": "SELECT session, beat, ended FROM {keyspace}.sessions WHERE session = ?",
    "end_session": (
        "UPDATE {keyspace}.sessions USING TTL ? SET ended = true WHERE session = ? IF ended = false"
    ),
    "mark_ended": (
        "INSERT INTO {keyspace}.sessions (session, ended) VALUES (?, true)"
        " IF NOT EXISTS USING TTL ?"
    ),
}
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,47}")


def checked_keyspace(name: str) -> str:
    """The keyspace of a URL's path. Raises ConfigError."""
    name = name or "coordination"
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} can't be a keyspace of Cassandra: a small letter, then small letters, digits"
            " and _, 48 at most"
        )
    return name
