"""Case A8: the backend does what its capabilities declare. Each check is a row of `CLAIMS`.

Rule: a claim that saves a backend work is checked: a backend that says `history` must deliver every
change, and one that says that it hasn't transactions must refuse them. So nobody skips a case by
declaring too little without also refusing the feature.
"""

import asyncio
from collections.abc import Awaitable, Callable

from coordination.errors import InvalidKey, NotSupported, ValueTooLarge
from coordination.testing.case import case
from coordination.testing.cases.watches import values
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness
from coordination.testing.seen import seen

CHANGES = 30


async def history(h: Harness) -> None:
    """A backend with history delivers each change; one without flags what it left out."""
    a, b = await h.make_clients(2)
    await a.storage.put("history", b"0")
    async with seen(b.storage.watch("history")) as events:
        for number in range(1, CHANGES + 1):
            await a.storage.update("history", str(number).encode())
        await h.until(lambda: values(events)[-1] == str(CHANGES).encode(), "the last arrives")
        missing = CHANGES + 1 - len(events)
        if h.capabilities.history:
            assert not missing, "history is declared, and a change is missing"
        else:
            assert not missing or any(event.coalesced for event in events)


async def transactions(h: Harness) -> None:
    """Transactions work over the declared scope, and are refused beyond it."""
    told = h.capabilities
    # Without the case's namespace, so that the keys have no part in common.
    a = await h.make_client(namespace="")
    here, there = f"{h.namespace}-here", f"{h.namespace}-there"
    near = a.storage.txn().put(f"{here}/1", b"v").put(f"{here}/2", b"v")
    far = a.storage.txn().put(f"{here}/3", b"v").put(f"{there}/1", b"v")
    await _works(near.commit(), works=told.txn, claim="txn")
    await _works(far.commit(), works=told.txn and told.txn_scope == "store", claim="txn_scope")


async def _works(call: Awaitable[object], *, works: bool, claim: str) -> None:
    if works:
        await call
        return
    error = await refusal(NotSupported, call)
    assert error.capability, f"the refusal doesn't name the capability: {claim}"


async def sizes(h: Harness) -> None:
    """Keys and values may be as large as declared, and no larger."""
    a = await h.make_client()
    limit = h.capabilities.max_value_bytes
    await a.storage.upsert("sizes", bytes(limit))
    await refusal(ValueTooLarge, a.storage.upsert("sizes", bytes(limit + 1)))
    too_long = "x" * (h.capabilities.max_key_bytes + 1)
    await refusal(InvalidKey, a.storage.put(too_long, b""))


async def ttls(h: Harness) -> None:
    """A session with the smallest ttl is granted it, in steps of the resolution."""
    told = h.capabilities
    client = await h.make_client(ttl=told.min_ttl_s)
    assert abs(client.session.ttl - told.min_ttl_s) < 1e-6
    if told.ttl_resolution_s:
        steps = client.session.ttl / told.ttl_resolution_s
        assert abs(steps - round(steps)) < 1e-6


async def push(h: Harness) -> None:
    """A backend that pushes has no poll interval; one that polls sees a change within it."""
    told = h.capabilities
    assert told.push_watch == (told.poll_interval_s == 0), "push_watch and poll_interval_s disagree"
    a, b = await h.make_clients(2)
    async with seen(b.storage.watch("push")) as events:
        await a.storage.put("push", b"v")
        await h.until(
            lambda: values(events)[-1] == b"v",
            "the change is seen",
            within=2 * told.poll_interval_s + 1.0,
        )


async def reads(h: Harness) -> None:
    """Linearizable reads see what was acknowledged to another client."""
    a, b = await h.make_clients(2)
    for number in range(20):
        await a.storage.upsert("reads", str(number).encode())
        record = await b.storage.fetch("reads")
        if h.capabilities.linearizable_reads:
            assert record is not None
            assert record.value == str(number).encode()


async def tokens(h: Harness) -> None:
    """Tokens of different resources compare where `fencing_scope` is the store."""
    a = await h.make_client()
    got = []
    for name in ("x", "y", "z"):
        async with a.lock(name)() as grant:
            got.append(grant.token)
    if h.capabilities.fencing_scope == "store":
        assert got == sorted(set(got))


async def lists(h: Harness) -> None:
    """All pages of an atomic list show one revision, also when keys are made meanwhile."""
    if not h.capabilities.atomic_list:
        return
    a, b = await h.make_clients(2)
    for number in range(50):
        await a.storage.put(f"lists/{number:02}", b"v")
    listed = []
    async for record in b.storage.list("lists/", page=10):
        listed.append(record.key)
        if len(listed) == 5:
            await a.storage.put("lists/99", b"late")
            await a.storage.delete("lists/40")
    assert listed == [f"lists/{number:02}" for number in range(50)], listed


CLAIMS: tuple[Callable[[Harness], Awaitable[None]], ...] = (
    history,
    transactions,
    sizes,
    ttls,
    push,
    reads,
    tokens,
    lists,
)


@case()
async def a8_claims_are_true(h: Harness) -> None:
    """The backend does what its capabilities declare, and refuses what they deny."""
    await h.make_client()
    for claim in CLAIMS:
        try:
            await claim(h)
        except AssertionError as error:
            raise AssertionError(f"the claim {claim.__name__} is false: {error}") from error
    await asyncio.sleep(0)
