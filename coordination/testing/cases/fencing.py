"""Cases F1 to F7: tokens, and writes that a store refuses from old holders."""

import json

from coordination.coordinator import Coordinator
from coordination.errors import Fenced, SessionLost
from coordination.testing.case import Trait, case
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness
from coordination.testing.store import Ability
from coordination.types import Token


async def token_of(client: Coordinator, lock: str) -> Token:
    """Acquire and release a lock; return the grant's token."""
    async with client.lock(lock)() as grant:
        return grant.token


@case()
async def f1_tokens_grow(h: Harness) -> None:
    """Tokens of one resource grow over releases, expiries, breaks and restarts."""
    a, b = await h.make_clients(2)
    tokens = [await token_of(client, "l") for client in (a, b, a)]
    killed = await h.make_client()
    held = await killed.lock("l").try_acquire()
    assert held
    tokens.append(held.token)
    await h.kill_client(killed)
    tokens.append(await h.in_time(token_of(b, "l"), "the lock of the killed client is free"))
    broken = await a.lock("l").try_acquire()
    assert broken
    tokens.append(broken.token)
    assert await b.lock("l").break_()
    tokens.append(await h.in_time(token_of(b, "l"), "the broken lock is free"))
    if Ability.RESTART in h.store.abilities:
        await h.restart_server()
        late = await h.make_client()
        tokens.append(await h.in_time(token_of(late, "l"), "the lock is free after a restart"))
    assert tokens == sorted(set(tokens)), tokens


@case(Trait.STORE_FENCING)
async def f2_tokens_of_one_store_compare(h: Harness) -> None:
    """Tokens of different resources of one store are in the order of their grants."""
    a, b = await h.make_clients(2)
    tokens: list[int] = [await token_of(a, "one"), await token_of(b, "two")]
    term = await a.election("e").nominate("a")
    assert term
    tokens.append(term.token)
    tokens.append((await b.group("g").join("b")).token)
    tokens.append(await token_of(a, "one"))
    assert tokens == sorted(set(tokens)), tokens


async def refused(client: Coordinator, key: str, token: Token, lock: str) -> bool:
    """Write with a token, and return whether the store refused it as an old one."""
    write = client.storage.upsert(key, b"late", fence=token, resource=client.lock(lock).resource)
    return (await refusal(Fenced, write)).current_token != token


@case()
async def f3_an_old_holder_is_refused(h: Harness) -> None:
    """A guarded write is refused after a newer grant, also if the old holder noticed nothing."""
    a, b = await h.make_clients(2)
    old = await a.lock("l").try_acquire()
    assert old
    await a.storage.put("k", b"1", fence=old)
    assert await b.lock("l").break_()
    new = await b.lock("l").try_acquire()
    assert new
    assert await refused(b, "k", old.token, "l")
    await b.storage.update("k", b"2", fence=new)
    record = await b.storage.fetch("k")
    assert record is not None
    assert record.value == b"2"


@case()
async def f4_a_released_grant_is_refused(h: Harness) -> None:
    """A guarded write with the token of a released grant is refused."""
    a, b = await h.make_clients(2)
    grant = await a.lock("l").try_acquire()
    assert grant
    assert await grant.release()
    assert await refused(b, "k", grant.token, "l")
    assert await b.storage.fetch("k") is None


@case(Ability.TRANSPLANT)
async def f5_tokens_survive_an_import(h: Harness) -> None:
    """Grants after an import into a quorum have larger tokens than every imported one."""
    a = await h.make_client()
    before = await token_of(a, "l")
    h.store = await h.store.transplant()
    b = await h.make_client()
    assert await token_of(b, "l") > before


@case()
async def f6_a_frozen_holder_is_refused(h: Harness) -> None:
    """A holder that was frozen past its session writes nothing after the thaw."""
    frozen = await h.make_remote_client()
    b = await h.make_client()
    old = await frozen.call(lambda c: c.lock("l").try_acquire())
    assert old
    await h.freeze_client(frozen)
    write = h.start(frozen.call(lambda c: c.storage.put("k", b"late", fence=old)))
    await h.in_time(token_of(b, "l"), "the lock passes on")
    h.thaw_client(frozen)
    await refusal((Fenced, SessionLost), h.in_time(write))
    assert await b.storage.fetch("k") is None


@case()
async def f7_a_token_is_a_plain_number(h: Harness) -> None:
    """Another client, as another process would, uses a token that came as text."""
    a, b = await h.make_clients(2)
    grant = await a.lock("l").try_acquire()
    assert grant
    token = Token(json.loads(json.dumps(grant.token)))
    assert type(token) is int
    await b.storage.put("k", b"v", fence=token, resource=b.lock("l").resource)
    await grant.release()
    assert await refused(b, "k", token, "l")
