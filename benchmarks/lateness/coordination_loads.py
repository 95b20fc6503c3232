"""The loads of `make lateness` for coordination.

Rule: as in `benchmarks.lateness.loads`, which takes these rows into its table.
"""

import asyncio
from base64 import b64encode
from typing import Any

from benchmarks.lateness.load import Load
from benchmarks.lateness.stage import TOKEN, Stage

_BASE = "/v1/coordination"
_ENTRIES = 300
_KEYS = 500
"""Operations of one transaction."""
_MEMBERS = 10_000
"""Of one group: the most that a resource has by default."""
_OF_A_SESSION = 1_000
_WATCHERS = 30
_AT_ONCE = 64


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
        await stage.json(f"{_BASE}/entries?kind=lock&name={turn}-0")
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


async def _crowd(stage: Stage) -> None:
    """A full group: each change of a member is news for many watchers, who get the whole group."""
    group = {"kind": "group", "name": "crowd"}
    sessions = [
        (await _asked(stage, "/sessions", {"ttlMs": 600_000}))["sessionId"]
        for _ in range(_MEMBERS // _OF_A_SESSION)
    ]
    room = asyncio.Semaphore(_AT_ONCE)

    async def enter(number: int) -> None:
        owner = sessions[number // _OF_A_SESSION]
        async with room:
            await _asked(stage, "/entries", {**group, "id": f"{number}", "sessionId": owner})

    await asyncio.gather(*map(enter, range(_MEMBERS)))
    member = {**group, "id": "0", "sessionId": sessions[0]}
    for _ in stage.going_on():
        revision = (await _asked(stage, "/watch", {"scopes": [{"prefix": "none"}]}))["revision"]
        body = {"scopes": [{**group, "after": revision}], "waitMs": 10_000}
        watching = asyncio.gather(*(_asked(stage, "/watch", body) for _ in range(_WATCHERS)))
        await asyncio.sleep(0.1)
        await _asked(stage, "/entries/change", {**member, "data": "AAAA"})
        await watching
        await stage.json(f"{_BASE}/entries?kind=group&name=crowd")
    for session in sessions:
        await _asked(stage, "/sessions/end", {"sessionId": session})


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
    Load("a group of 10,000 and its watchers", (), _crowd),
    Load(
        "transactions of 500 keys",
        ("commit_keys", "get_key", "list_keys", "watch_coordination"),
        _keys,
        ("KeyRecord", "RemoveKeyRecord", "TokenBaseRecord"),
    ),
)
