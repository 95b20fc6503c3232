"""Elections: who leads, and that nobody leads beside another, on virtual time."""

import asyncio
from itertools import pairwise

import pytest

from coordination.errors import (
    CandidateExists,
    DeadlineExceeded,
    Fenced,
    NotHeld,
    OutcomeUnknown,
    SessionLost,
    Unavailable,
)
from coordination.types import Revision, Token
from tests.unit.coordination.virtual_loop import client, cut, kill, store_of, virtual


@virtual
async def test_candidates_lead_in_their_order_with_growing_tokens() -> None:
    async with client("a") as a, client("b") as b:
        first = await a.election("s").nominate("A", b"at 1")
        assert first
        assert await b.election("s").nominate("B") is None
        leader = await b.election("s").get_leader()
        assert (leader.id, leader.data, leader.token) == ("A", b"at 1", first.token)
        assert [c.id for c in await a.election("s").candidates()] == ["A", "B"]
        assert await a.election("s").resign("A")
        assert first.lost.is_set()
        second = await b.election("s").nominate("B")
        assert second.token > first.token
        assert not await first.resign()
        assert not await a.election("s").resign("A")
        assert (await a.election("s").get_leader()).id == "B"


@virtual
async def test_resigning_ends_the_candidacy_unless_it_is_to_stay() -> None:
    async with client("a") as a, client("b") as b:
        term = await a.election("s").nominate("A", b"data")
        await b.election("s").nominate("B")
        assert not await a.election("s").resign("A", token=Token(term.token + 1))
        assert not await b.election("s").resign("B")
        assert not await b.election("s").resign("A")
        assert await a.election("s").resign("A", token=term.token, stay_candidate=True)
        assert [c.id for c in await a.election("s").candidates()] == ["B", "A"]
        assert await a.election("s").withdraw("A")
        assert not await a.election("s").withdraw("A")
        assert await b.election("s").resign("B")
        assert await a.election("s").get_leader() is None


@virtual
async def test_a_candidates_id_belongs_to_one_session() -> None:
    async with client("a") as a, client("b") as b:
        await a.election("s").nominate("X")
        with pytest.raises(CandidateExists):
            await b.election("s").nominate("X")
        with pytest.raises(CandidateExists):
            async with b.election("s").campaign("X"):
                pass
        assert [c.id for c in await a.election("s").candidates()] == ["X"]


@virtual
async def test_a_campaign_leads_resigns_and_leaves_nothing() -> None:
    async with client("a") as a, client("b") as b:
        led = []

        async def lead(who, name, seconds):
            async with who.election("s").campaign(name) as term:
                led.append((name, term.token))
                await asyncio.sleep(seconds)
                led.append((name, "ends"))

        first = asyncio.create_task(lead(a, "A", 5.0))
        await asyncio.sleep(0.1)
        await asyncio.gather(first, lead(b, "B", 1.0))
        assert [name for name, _ in led] == ["A", "A", "B", "B"]
        assert led[2][1] > led[0][1]
        assert await a.election("s").candidates() == ()


@virtual
async def test_a_leader_that_is_cut_off_ends_before_another_is_told_that_it_leads() -> None:
    async with client("a") as a, client("b") as b:
        loop = asyncio.get_running_loop()
        ended = []

        async def lead():
            async with a.election("s").campaign("A"):
                cut(a)
                try:
                    await asyncio.sleep(1000.0)
                finally:
                    ended.append(loop.time())

        leading = asyncio.create_task(lead())
        await asyncio.sleep(0.1)
        async with b.election("s").campaign("B"):
            assert ended
            assert loop.time() > ended[0]
        with pytest.raises(SessionLost):
            await leading


@virtual
async def test_a_candidate_whose_session_ends_while_it_waits_is_told_so() -> None:
    async with client("a") as a, client("b") as b:
        await a.election("s").nominate("A")
        led = []

        async def wait():
            async with b.election("s").campaign("B"):
                led.append("B")

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(1.0)
        store_of(b).end_session(b.session.id)
        with pytest.raises(SessionLost):
            await waiting
        await a.election("s").resign("A")
        await asyncio.sleep(30.0)
        assert not led
        assert await a.election("s").candidates() == ()


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.15, 1.0])
def test_a_cancelled_campaign_leaves_no_candidate(after_s: float) -> None:
    @virtual
    async def test() -> None:
        async with client("a") as a, client("b") as b:
            await a.election("s").nominate("A")
            enter = b.backend.enter

            async def slow(claim):
                await asyncio.sleep(0.1)
                entry = await enter(claim)
                await asyncio.sleep(0.1)
                return entry

            b.backend.enter = slow

            async def wait():
                async with b.election("s").campaign("B"):
                    await asyncio.sleep(1000.0)

            waiting = asyncio.create_task(wait())
            await asyncio.sleep(after_s)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert [c.id for c in await a.election("s").candidates()] == ["A"]

    test()


@virtual
async def test_a_campaign_that_is_cancelled_as_it_wins_does_not_lead() -> None:
    async with client("a") as a, client("b") as b:
        await a.election("s").nominate("A")

        async def wait():
            async with b.election("s").campaign("B"):
                await asyncio.sleep(1000.0)

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(1.0)
        await a.election("s").resign("A")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await a.election("s").candidates() == ()


@virtual
async def test_a_campaign_ends_after_its_time() -> None:
    async with client("a") as a, client("b") as b:
        await a.election("s").nominate("A")
        started = asyncio.get_running_loop().time()
        with pytest.raises(DeadlineExceeded):
            async with b.election("s").campaign("B", timeout=3.0):
                pass
        assert asyncio.get_running_loop().time() - started == pytest.approx(3.0, abs=0.01)
        assert [c.id for c in await a.election("s").candidates()] == ["A"]


@virtual
async def test_a_withdrawn_campaign_says_so() -> None:
    async with client("a") as a, client("b") as b:
        await a.election("s").nominate("A")

        async def wait():
            async with b.election("s").campaign("B"):
                pass

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(1.0)
        assert await b.election("s").withdraw("B")
        with pytest.raises(NotHeld):
            await waiting


@virtual
async def test_what_cannot_be_left_now_is_left_once_the_store_answers() -> None:
    async with client("a", request_timeout=1.0) as a, client("b") as b:
        leave = a.backend.leave
        async with a.election("s").campaign("A"):
            cut(a)
        del a.backend.enter, a.backend.renew, a.backend.change, a.backend.commit
        await asyncio.sleep(3.0)
        assert (await b.election("s").get_leader()).id == "A"
        a.backend.leave = leave
        await asyncio.sleep(3.0)
        assert await b.election("s").get_leader() is None
        del a.backend.entries, a.backend.get, a.backend.end_session


async def resign_by_term(_, term):
    return await term.resign()


async def resign_by_name(client, term):
    return await client.election("s").resign("A", token=term.token)


resigning = pytest.mark.parametrize("resign", [resign_by_term, resign_by_name])


@resigning
def test_a_term_is_not_held_while_its_resignation_is_on_the_way(resign) -> None:
    @virtual
    async def test() -> None:
        async with client("a") as a, client("b") as b:
            term = await a.election("s").nominate("A")
            leave = a.backend.leave

            async def slow(*args):
                left = await leave(*args)
                await asyncio.sleep(1.0)
                return left

            a.backend.leave = slow
            resigned = asyncio.create_task(resign(a, term))
            await asyncio.sleep(0.5)
            assert await b.election("s").nominate("B"), "B leads before A has its answer"
            assert not term.held
            with pytest.raises(NotHeld):
                term.check()
            assert await resigned

    test()


@resigning
@pytest.mark.parametrize("arrives", [True, False])
def test_a_resignation_without_an_answer_ends_the_term_and_the_body(resign, arrives) -> None:
    @virtual
    async def test() -> None:
        async with client("a") as a, client("b") as b:
            leave = a.backend.leave

            async def unanswered(*args):
                if arrives:
                    await leave(*args)
                raise (OutcomeUnknown if arrives else Unavailable)("no answer")

            terms: list = []

            async def lead():
                async with a.election("s").campaign("A") as term:
                    terms.append(term)
                    await asyncio.sleep(1000.0)

            leading = asyncio.create_task(lead())
            await asyncio.sleep(1.0)
            a.backend.leave = unanswered
            with pytest.raises((OutcomeUnknown, Unavailable)):
                await resign(a, terms[0])
            assert not terms[0].held
            with pytest.raises(NotHeld):
                await leading
            a.backend.leave = leave
            await asyncio.sleep(3.0)
            assert await b.election("s").nominate("B"), "A's entry goes once the store answers"

    test()


@virtual
async def test_who_gave_a_term_back_without_an_answer_enters_anew_and_not_the_old_entry() -> None:
    """Else it would hold the entry that the removal, still on its way, takes away."""
    async with client("a") as a:
        first = await a.election("s").nominate("A")
        leave = a.backend.leave

        async def unanswered(*args):
            raise Unavailable("no answer")

        a.backend.leave = unanswered
        with pytest.raises(Unavailable):
            await first.resign()
        again = asyncio.create_task(a.election("s").nominate("A"))
        await asyncio.sleep(1.0)
        a.backend.leave = leave
        second = await again
        await asyncio.sleep(3.0)
        assert second.held
        assert second.token > first.token


@virtual
async def test_ten_candidates_are_killed_one_after_another() -> None:
    async with client("watcher") as w:
        terms = []

        async def run(number):
            c = await client(f"c{number}", ttl=4.0)
            async with c.election("s").campaign(f"c{number}") as term:
                begun = asyncio.get_running_loop().time()
                await kill(c)
                try:
                    await asyncio.sleep(1000.0)
                finally:
                    terms.append((begun, asyncio.get_running_loop().time(), term.token))
                    await c.aclose()

        runs = await asyncio.gather(*(run(n) for n in range(10)), return_exceptions=True)
        assert all(isinstance(ended, SessionLost) for ended in runs)
        assert len(terms) == 10
        tokens = [token for _, _, token in terms]
        assert tokens == sorted(set(tokens))
        for (_, ended, _), (begun, _, _) in pairwise(terms):
            assert begun >= ended
        await asyncio.sleep(1.0)
        assert await w.election("s").get_leader() is None


@virtual
async def test_a_leaders_data_changes_and_its_token_stays() -> None:
    async with client("a") as a, client("b") as b:
        term = await a.election("s").nominate("A", b"1")
        assert await term.proclaim(b"2") > term.token
        leader = await b.election("s").get_leader()
        assert (leader.data, leader.token) == (b"2", term.token)


@virtual
async def test_observers_see_each_leader_and_each_end_in_order() -> None:
    async with client("a") as a, client("b") as b, b.election("s").watch() as events:
        await a.election("s").nominate("A")
        await a.election("s").resign("A")
        await a.election("s").nominate("B")
        seen = [await anext(events) for _ in range(4)]
        assert [e.leader and e.leader.id for e in seen] == [None, "A", None, "B"]
        assert [e.kind for e in seen] == ["snapshot", "change", "change", "change"]
        revisions = [e.revision for e in seen]
        assert revisions == sorted(revisions)
        assert events.revision == revisions[-1]


@virtual
async def test_an_old_terms_write_is_refused() -> None:
    async with client("a") as a, client("b") as b:
        old = await a.election("s").nominate("A")
        await a.storage.upsert("k", b"1", fence=old)
        await b.election("s").nominate("B")
        await a.election("s").resign("A")
        new = await b.election("s").nominate("B")
        with pytest.raises(Fenced) as refused:
            await a.storage.upsert("k", b"2", fence=old)
        assert refused.value.current_token == new.token
        # A token is a number: another process may bring it.
        resource = b.election("s").resource
        await a.storage.upsert("k", b"3", fence=int(new.token), resource=resource)
        with pytest.raises(Fenced):
            await b.storage.upsert("k", b"4", fence=Revision(old.token), resource=resource)


@virtual
async def test_a_term_that_was_broken_ends_its_body() -> None:
    async with client("a") as a:

        async def lead():
            async with a.election("s").campaign("A") as term:
                assert await a.backend.break_grant(term.full_resource)
                await asyncio.sleep(1000.0)

        with pytest.raises(NotHeld):
            await lead()
