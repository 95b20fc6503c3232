"""Cases G9 to G13: data, crowds, observers and lost replies of members."""

import asyncio
import json
from contextlib import suppress
from functools import partial

from coordination.errors import MemberExists, OutcomeUnknown
from coordination.testing.case import case
from coordination.testing.cases.groups import data_of, join_refused
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness
from coordination.testing.seen import seen
from coordination.testing.store import Ability
from coordination.types import MembershipEvent


@case(busy=True)
async def g9_data_is_bytes(h: Harness) -> None:
    """Data comes back byte by byte: empty, 64 KiB, text and JSON."""
    a, b = await h.make_clients(2)
    large = bytes(range(256)) * 256
    samples: dict[str, bytes | str] = {
        "empty": b"",
        "large": large[: h.capabilities.max_value_bytes],
        "text": "Зоопарк 動物園 🦓",
        "json": json.dumps({"host": "h", "port": 1}),
    }
    for name, data in samples.items():
        await a.group("g").join(name, data)
    told = await data_of(b, "g")
    for name, data in samples.items():
        assert told[name] == (data.encode() if isinstance(data, str) else data)


@case(busy=True)
async def g10_a_hundred_join(h: Harness) -> None:
    """A hundred members that join at once are all there, each with its own token."""
    clients = await h.make_clients(4)
    joins = (clients[n % 4].group("g").join(f"m{n}") for n in range(100))
    joined = await asyncio.gather(*joins)
    assert len({membership.token for membership in joined}) == 100
    assert await clients[0].group("g").membership_list() == {f"m{n}" for n in range(100)}


def _last_has(events: list[MembershipEvent], name: str) -> bool:
    return name in events[-1].members


@case()
async def g11_an_observer(h: Harness) -> None:
    """A client that never joined sees members come and go."""
    a, observer = await h.make_clients(2)
    async with seen(observer.group("g").watch()) as events:
        for name in ("x", "y", "z"):
            await a.group("g").join(name)
            await h.until(partial(_last_has, events, name), f"{name} is seen")
        await a.group("g").leave("y")
        await h.until(lambda: set(events[-1].members) == {"x", "z"}, "the leave is seen")
        came = frozenset[str]().union(*(event.joined for event in events))
        went = frozenset[str]().union(*(event.left for event in events))
    assert came >= {"x", "y", "z"}
    assert went == {"y"}


@case(Ability.CUT)
async def g12_a_joins_reply_is_lost(h: Harness) -> None:
    """A session whose join's reply was lost joins again without a conflict with itself."""
    a, b = await h.make_clients(2)

    async def applied() -> bool:
        return "a" in await b.group("g").membership_list()

    join = await h.drop_next_reply(a, a.group("g").join("a", b"1"), applied)
    with suppress(OutcomeUnknown):
        await h.in_time(join)
    await h.in_time(a.group("g").join("a", b"2"), "the join that is tried again returns")
    assert await data_of(b, "g") == {"a": b"2"}


@case()
async def g13_rejoining_while_the_old_entry_goes(h: Harness) -> None:
    """A new session that joins under its predecessor's id is the one member from then on."""
    old, new, observer = await h.make_clients(3)
    await old.group("g").join("a", b"old")
    await h.kill_client(old)

    async def joins() -> bool:
        return not await join_refused(new, "g", "a")

    await h.eventually(joins, "the new session joins")
    end = h.now() + h.ttl
    while h.now() < end:
        members = await observer.group("g").membership()
        assert set(members) == {"a"}
        assert members["a"].session == new.session.id
        await asyncio.sleep(h.ttl / 20)
    await refusal(MemberExists, observer.group("g").join("a"))
