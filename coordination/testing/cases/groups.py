"""Cases G1 to G8 and G14: members of groups, one fact each."""

from coordination.coordinator import Coordinator
from coordination.errors import MemberExists, NotHeld
from coordination.testing.case import case
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness
from coordination.testing.seen import seen


async def data_of(client: Coordinator, group: str) -> dict[str, bytes]:
    """Return the group's members with their data."""
    return {name: member.data for name, member in (await client.group(group).membership()).items()}


async def join_refused(client: Coordinator, group: str, name: str) -> bool:
    """Try to join; return whether another session has the id."""
    try:
        await client.group(group).join(name, b"another")
    except MemberExists:
        return True
    return False


@case()
async def g1_join_is_seen_everywhere(h: Harness) -> None:
    """After a join every client sees the member and its data."""
    a, b = await h.make_clients(2)
    membership = await a.group("g").join("a", b"data")
    assert membership.id == "a"
    assert membership.token > 0
    for client in (a, b):
        assert await data_of(client, "g") == {"a": b"data"}
        members = await client.group("g").membership()
        assert members["a"].session == a.session.id
        assert members["a"].token == membership.token


@case()
async def g2_ids_conflict(h: Harness) -> None:
    """Another live session's id is refused, and its member stays as it was."""
    a, b = await h.make_clients(2)
    await a.group("g").join("a", b"first")
    error = await refusal(MemberExists, b.group("g").join("a"))
    assert error.member is None or error.member.session == a.session.id
    assert await data_of(b, "g") == {"a": b"first"}


@case()
async def g3_an_id_becomes_free(h: Harness) -> None:
    """An id is free after its member left, closed, or expired."""
    b = await h.make_client()
    left, closed, killed = await h.make_clients(3)
    await left.group("g").join("a")
    assert await left.group("g").leave("a")
    assert not await join_refused(b, "g", "a")
    await b.group("g").leave("a")
    await closed.group("g").join("a")
    await closed.aclose()
    assert not await join_refused(b, "g", "a")
    await b.group("g").leave("a")
    await killed.group("g").join("a")
    await h.kill_client(killed)

    async def joins() -> bool:
        return not await join_refused(b, "g", "a")

    await h.eventually(joins, "the id of the killed client is free")
    assert await data_of(b, "g") == {"a": b"another"}


@case()
async def g4_joining_twice_updates(h: Harness) -> None:
    """A second join of the same session and id changes the data of the one member."""
    a, b = await h.make_clients(2)
    async with seen(b.group("g").watch()) as events:
        first = await a.group("g").join("a", b"1")
        await h.until(lambda: "a" in events[-1].members, "the join is seen")
        joined = events[-1].revision
        again = await a.group("g").join("a", b"2")
        assert again.token == first.token
        await h.until(lambda: events[-1].members["a"].data == b"2", "the update is seen")
        assert events[-1].revision > joined
    assert await data_of(b, "g") == {"a": b"2"}
    before = events[-1].revision
    assert await a.group("g").update("a", b"3") > before


@case()
async def g5_leave_compares_the_owner(h: Harness) -> None:
    """Leaving what isn't ours returns False and removes nothing."""
    a, b = await h.make_clients(2)
    await a.group("g").join("a")
    assert not await b.group("g").leave("a")
    assert not await b.group("g").leave("nobody")
    assert await b.group("g").membership_list() == {"a"}
    assert await a.group("g").leave("a")
    assert not await a.group("g").leave("a")


@case()
async def g6_join_leave_join(h: Harness) -> None:
    """Join, leave and join fire at least one event and end with the right state."""
    a, b = await h.make_clients(2)
    async with seen(b.group("g").watch()) as events:
        assert events[0].kind == "snapshot"
        await a.group("g").join("a", b"1")
        await a.group("g").leave("a")
        await a.group("g").join("a", b"2")
        await h.until(
            lambda: "a" in events[-1].members and events[-1].members["a"].data == b"2",
            "the last state arrives",
        )
        revisions = [event.revision for event in events]
        assert revisions == sorted(revisions)


@case()
async def g7_names_do_not_mix(h: Harness) -> None:
    """Groups whose names begin alike have their own members."""
    a = await h.make_client()
    for group in ("a", "ab", "a/b"):
        await a.group(group).join(f"in-{group}")
    for group in ("a", "ab", "a/b"):
        assert await a.group(group).membership_list() == {f"in-{group}"}


@case()
async def g8_an_empty_group(h: Harness) -> None:
    """A group without members is empty and no error."""
    a = await h.make_client()
    assert await a.group("never").membership() == {}
    assert await a.group("never").membership_list() == frozenset()


@case()
async def g14_only_the_owner_updates(h: Harness) -> None:
    """Another session's update of a member's data is refused."""
    a, b = await h.make_clients(2)
    await a.group("g").join("a", b"mine")
    await refusal(NotHeld, b.group("g").update("a", b"yours"))
    assert await data_of(a, "g") == {"a": b"mine"}
