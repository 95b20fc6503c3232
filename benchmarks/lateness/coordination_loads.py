"""The loads of `make lateness` for coordination.

Rule: as in `benchmarks.lateness.loads`, which takes these rows into its table.
"""

from base64 import b64encode
from typing import Any

from benchmarks.lateness.load import Load
from benchmarks.lateness.stage import TOKEN, Stage

_BASE = "/v1/coordination"
_ENTRIES = 300
_KEYS = 500
"""Operations of one transaction."""


async def _asked(stage: Stage, path: str, body: dict[str, Any]) -> Any:
    status, answer = await stage.change("POST", _BASE + path, body, bearer=TOKEN)
    assert status == 200, answer
    return answer


async def _queues(stage: Stage) -> None:
    """A session with many entries ends: each has a waiting entry behind it, which is granted."""
    for turn in stage.going_on():
        first, second = [
            (await _asked(stage, "/sessions", {"ttlMs": 600_000}))["sessionId"] for _ in range(2)
        ]
        named = {"kind": "lock", "id": "1"}
        for number in range(_ENTRIES):
            for session, entry in ((first, "1"), (second, "2")):
                name = {"name": f"{turn}-{number}", "id": entry, "sessionId": session}
                await _asked(stage, "/entries", {**named, **name})
        name = {"kind": "lock", "name": f"{turn}-0", "id": "1", "sessionId": first}
        await _asked(stage, "/entries/change", {**name, "data": "AAAA"})
        await _asked(stage, "/entries/break", {"kind": "lock", "name": f"{turn}-1"})
        await _asked(stage, "/entries/leave", name)
        await _asked(stage, "/sessions/renew", {"sessionId": first})
        await stage.json(f"{_BASE}/sessions")
        for which in (f"kind=lock&name={turn}-0", "kind=lock", f"sessionId={first}"):
            await stage.json(f"{_BASE}/entries?{which}")
        await stage.json(f"{_BASE}/limits")
        for session in (first, second):
            await _asked(stage, "/sessions/end", {"sessionId": session})


async def _keys(stage: Stage) -> None:
    """Transactions of many keys, which a watch of their prefix reads from the log and the feed."""
    value = b64encode(bytes(1_000)).decode()
    for turn in stage.going_on():
        for op in ("upsert", "delete"):
            operations = [
                {"op": op, "key": f"k/{turn}/{n}", "data": "" if op == "delete" else value}
                for n in range(_KEYS)
            ]
            above = {"tokensAbove": 10**6 * (turn + 1)}
            await _asked(stage, "/commit", {"operations": operations, **above})
        scopes = [{"prefix": f"k/{turn}/", "after": 0}, {"prefix": "k/"}]
        await _asked(stage, "/watch", {"scopes": scopes})
        await stage.json(f"{_BASE}/key?key=k")
        await stage.json(f"{_BASE}/keys?prefix=k")


COORDINATION_LOADS = (
    Load(
        "sessions with many entries end",
        (
            "open_session",
            "renew_session",
            "end_session",
            "list_sessions",
            "enter",
            "change_entry",
            "leave",
            "break_grant",
            "list_entries",
            "coordination_limits",
        ),
        _queues,
        ("SessionRecord", "EndSessionRecord", "EntryRecord", "RemoveEntryRecord"),
    ),
    Load(
        "transactions of 500 keys",
        ("commit_keys", "get_key", "list_keys", "watch_coordination"),
        _keys,
        ("KeyRecord", "RemoveKeyRecord", "TokenBaseRecord"),
    ),
)
