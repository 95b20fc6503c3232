"""Cases E1 to E5, E9, E10, E16 and E17: elections without a fault."""

from functools import partial

from coordination.coordinator import Coordinator
from coordination.errors import CandidateExists
from coordination.testing.case import case
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness


async def leads(client: Coordinator, service: str, candidate: str | None) -> bool:
    """Whether this candidate leads, as the client sees it; None: whether nobody does."""
    leader = await client.election(service).get_leader()
    return (leader.id if leader else None) == candidate


async def candidates(client: Coordinator, service: str) -> list[str]:
    """Return the ids of all candidates in the order of their nominations."""
    return [candidate.id for candidate in await client.election(service).candidates()]


@case()
async def e1_the_first_candidate_leads(h: Harness) -> None:
    """The first nomination wins, and every client sees the same leader, data and token."""
    a, b = await h.make_clients(2)
    term = await a.election("e").nominate("a", b"data")
    assert term
    assert term.token > 0
    for client in (a, b):
        leader = await client.election("e").get_leader()
        assert leader is not None
        assert (leader.id, leader.data, leader.token) == ("a", b"data", term.token)


@case()
async def e2_the_second_waits(h: Harness) -> None:
    """A second candidate gets no term and leaves the leader as it is."""
    a, b = await h.make_clients(2)
    term = await a.election("e").nominate("a")
    assert term
    assert await b.election("e").nominate("b") is None
    leader = await b.election("e").get_leader()
    assert leader is not None
    assert (leader.id, leader.token) == ("a", term.token)
    assert await candidates(a, "e") == ["a", "b"]


@case()
async def e3_resign_hands_over_in_order(h: Harness) -> None:
    """After a resignation the next nominated candidate leads, with a larger token."""
    clients = await h.make_clients(3)
    for name, client in zip("abc", clients, strict=True):
        await client.election("e").nominate(name)
    tokens = []
    for name, client in zip("abc", clients, strict=True):
        await h.eventually(partial(leads, clients[0], "e", name), f"{name} leads")
        leader = await client.election("e").get_leader()
        assert leader is not None
        tokens.append(leader.token)
        assert await client.election("e").resign(name)
    assert tokens == sorted(set(tokens))
    assert await leads(clients[0], "e", None)


@case()
async def e4_only_the_present_term_resigns(h: Harness) -> None:
    """A resignation of somebody else, or with an old token, is ignored and returns False."""
    a, b = await h.make_clients(2)
    old = await a.election("e").nominate("a")
    assert old
    await b.election("e").nominate("b")
    assert not await b.election("e").resign("b")
    assert not await b.election("e").resign("a")
    assert await leads(b, "e", "a")
    assert await a.election("e").resign("a", token=old.token)
    await b.election("e").withdraw("b")
    await h.eventually(lambda: leads(b, "e", None), "nobody leads")
    new = await a.election("e").nominate("a")
    assert new
    assert new.token > old.token
    assert not await a.election("e").resign("a", token=old.token)
    assert not await old.resign()
    assert await leads(b, "e", "a")


@case()
async def e5_a_resigner_stays_away(h: Harness) -> None:
    """Who resigns doesn't lead again, unless it stays a candidate."""
    a, b = await h.make_clients(2)
    await a.election("e").nominate("a")
    await b.election("e").nominate("b")
    assert await a.election("e").resign("a")
    await h.eventually(lambda: leads(a, "e", "b"), "b leads")
    assert await candidates(a, "e") == ["b"]
    await a.election("e").nominate("a")
    assert await b.election("e").resign("b", stay_candidate=True)
    await h.eventually(lambda: leads(a, "e", "a"), "a leads")
    assert await candidates(a, "e") == ["a", "b"]
    assert await a.election("e").resign("a")
    await h.eventually(lambda: leads(a, "e", "b"), "b leads again")


@case()
async def e9_nobody_leads(h: Harness) -> None:
    """The leader of a vacant election is None."""
    a = await h.make_client()
    assert await a.election("never").get_leader() is None
    await a.election("e").nominate("a")
    await a.election("e").resign("a")
    assert await a.election("e").get_leader() is None


@case()
async def e10_candidates_conflict(h: Harness) -> None:
    """A candidate id that another session has is refused."""
    a, b = await h.make_clients(2)
    await a.election("e").nominate("same")
    await refusal(CandidateExists, b.election("e").nominate("same"))
    assert await candidates(b, "e") == ["same"]
    assert not await b.election("e").withdraw("same")
    assert await leads(b, "e", "same")


@case()
async def e16_proclaim(h: Harness) -> None:
    """A leader's new data is visible and its token stays."""
    a, b = await h.make_clients(2)
    term = await a.election("e").nominate("a", b"1")
    assert term
    await term.proclaim(b"2")
    leader = await b.election("e").get_leader()
    assert leader is not None
    assert (leader.data, leader.token) == (b"2", term.token)


@case()
async def e17_elections_are_independent(h: Harness) -> None:
    """Two elections of one session know nothing of each other."""
    a, b = await h.make_clients(2)
    one = await a.election("one").nominate("a")
    two = await a.election("two").nominate("a")
    assert one
    assert two
    assert await leads(b, "one", "a")
    assert await one.resign()
    assert await leads(b, "one", None)
    assert await leads(b, "two", "a")
    assert not two.lost.is_set()
