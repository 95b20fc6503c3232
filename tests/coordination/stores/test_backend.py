"""What the backends for stores of other makers promise, asked of real servers.

Rule: names that belong together begin alike, since Cassandra changes only such together.
"""

import asyncio
import itertools

import pytest

from coordination.backend import (
    Auth,
    Check,
    Claim,
    Commit,
    EntryExists,
    Fence,
    KeyScope,
    Operation,
    PrefixScope,
    Resource,
)
from coordination.errors import (
    AuthFailed,
    ConfigError,
    CoordinationError,
    Fenced,
    KeyExists,
    KeyMissing,
    NotHeld,
    RevisionMismatch,
    SessionLost,
    TxnTooLarge,
    Unavailable,
    ValueTooLarge,
)
from coordination.types import Revision, Token

GROUP = Resource("group", "ns/a/group")
ELECTION = Resource("election", "ns/an election")
LOCK = Resource("lock", "ns/замок")
STRANGE_KEYS = (
    "plain",
    "with space",
    "%",
    "%2F",
    "*",
    "<default>",
    "/",
    "//",
    "/leading",
    "trailing/",
    "a/./b",
    "a/../b",
    ".",
    "..",
    "zookeeper",
    "ключ",
    "鍵",
    "\N{GRINNING FACE}",
    "\u00e9",
    "e\u0301",
    "\x01\x7f\ue000\ufff0",
    "x" * 512,
)


def put(key: str, data: bytes = b"1", **more) -> Commit:
    return Commit((Operation("put", key, data),), **more)


@pytest.mark.parametrize("key", STRANGE_KEYS, ids=ascii)
async def test_any_text_is_a_key(backend, key):
    await backend.commit(put(key, key.encode()))
    record = await backend.get(key)
    assert (record.key, record.value, record.version) == (key, key.encode(), 1)
    assert [record.key async for page in _pages(backend, "") for record in page] == [key]


async def _pages(backend, prefix, page=100):
    async for part in backend.pages(prefix, keys_only=False, page=page):
        yield part.records


async def test_lists_are_sorted_by_bytes_and_end_at_their_prefix(backend):
    for key in STRANGE_KEYS:
        await backend.commit(put(key))
    pages = [[record.key for record in page] async for page in _pages(backend, "", page=5)]
    assert list(itertools.chain(*pages)) == sorted(STRANGE_KEYS, key=str.encode)
    assert [len(page) for page in pages[:-1]] == [5] * (len(pages) - 1)
    assert [r.key async for page in _pages(backend, "a/.") for r in page] == ["a/../b", "a/./b"]
    empty = [part async for part in backend.pages("none", keys_only=True, page=5)]
    assert [(part.records, part.revision > 0) for part in empty] == [((), True)]


REFUSED = (
    (Commit((Operation("put", "there"),)), KeyExists, 0),
    (Commit((Operation("update", "missing"),)), KeyMissing, 0),
    (Commit((Operation("update", "there", b"", Revision(7777)),)), RevisionMismatch, 0),
    (Commit((Operation("delete", "missing", b"", Revision(1)),)), RevisionMismatch, 0),
    (Commit((Operation("put", "new"),), checks=(Check("there", None),)), RevisionMismatch, 0),
    (
        Commit((Operation("put", "new"), Operation("put", "there")), (Check("missing", None),)),
        KeyExists,
        2,
    ),
)


@pytest.mark.parametrize(("commit", "error", "index"), REFUSED)
async def test_a_refused_commit_names_its_step_and_changes_nothing(backend, commit, error, index):
    await backend.commit(put("there", b"old"))
    before = await backend.get("there")
    with pytest.raises(error) as caught:
        await backend.commit(commit)
    assert caught.value.index == index
    assert await backend.get("there") == before
    assert await backend.get("new") is None


async def test_only_one_of_fifty_writers_with_the_same_revision_wins(backend, new_backend):
    other = new_backend()
    await other.open()
    made = await backend.commit(put("k"))
    commit = Commit((Operation("update", "k", b"2", made.revision),))
    writers = (backend, other)
    results = await asyncio.gather(
        *(writers[n % 2].commit(commit) for n in range(50)), return_exceptions=True
    )
    assert sum(not isinstance(result, Exception) for result in results) == 1
    assert {type(result) for result in results if isinstance(result, Exception)} == {
        RevisionMismatch
    }


async def test_a_key_made_anew_with_the_same_value_is_another_one(backend):
    first = await backend.commit(put("k"))
    await backend.commit(Commit((Operation("delete", "k"),)))
    second = await backend.commit(put("k"))
    with pytest.raises(RevisionMismatch) as caught:
        await backend.commit(Commit((Operation("delete", "k", b"", first.revision),)))
    assert caught.value.current == second.revision
    record = await backend.get("k")
    assert (record.create_revision, record.version) == (second.revision, 1)


async def test_the_same_request_id_is_made_once(backend):
    session = (await backend.open_session(5.0)).id
    commit = put("k", request_id="the same", session=session)
    first = await backend.commit(commit)
    await backend.commit(Commit((Operation("delete", "k"),)))
    assert await backend.commit(commit) == first
    assert await backend.get("k") is None


async def test_large_values_go_through_or_are_refused_at_once(backend):
    most = backend.capabilities.max_value_bytes
    value = bytes(most)
    key = "k" * 1000
    await backend.commit(put(key, value))
    assert (await backend.get(key)).value == value
    with pytest.raises(ValueTooLarge) as caught:
        await backend.commit(put("k", value + b"x"))
    assert caught.value.limit == most
    with pytest.raises(TxnTooLarge):
        await backend.commit(Commit((Operation("put", "a", value), Operation("put", "b", value))))
    assert await backend.get("a") is None


async def test_entries_are_granted_in_order_and_go_with_their_session(backend):
    one, two, three = [(await backend.open_session(5.0)).id for _ in range(3)]
    entered = [
        await backend.enter(Claim(ELECTION, id_, id_.encode(), session))
        for id_, session in (("z", one), ("a", two), ("m", three))
    ]
    assert [entry.granted for entry in entered] == [True, False, False]
    assert [entry.token for entry in entered] == sorted(entry.token for entry in entered)
    assert (await backend.entries(ELECTION)).entries == tuple(entered)
    await backend.end_session(one)
    left = (await backend.entries(ELECTION)).entries
    assert [(entry.id, entry.granted) for entry in left] == [("a", True), ("m", False)]


async def test_an_id_belongs_to_one_session(backend):
    one, two = [(await backend.open_session(5.0)).id for _ in range(2)]
    first = await backend.enter(Claim(GROUP, "id", b"1", one))
    again = await backend.enter(Claim(GROUP, "id", b"2", one))
    assert (again.token, again.data, again.revision > first.revision) == (first.token, b"2", True)
    with pytest.raises(EntryExists) as caught:
        await backend.enter(Claim(GROUP, "id", b"3", two))
    assert caught.value.entry.session == one
    with pytest.raises(NotHeld):
        await backend.change(GROUP, "id", two, b"3")
    assert not await backend.leave(GROUP, "id", two, None)
    assert not await backend.leave(GROUP, "id", one, Revision(first.token - 1))
    assert await backend.leave(GROUP, "id", one, first.token)
    assert (await backend.enter(Claim(GROUP, "id", b"3", two))).token > first.token


SHARING = (
    ("xx", [True, False]),
    ("ss", [True, True]),
    ("sxs", [True, False, False]),
    ("xss", [True, False, False]),
    ("ssx", [True, True, False]),
)


@pytest.mark.parametrize(("claims", "granted"), SHARING)
async def test_shared_entries_are_granted_together(backend, claims, granted):
    session = (await backend.open_session(5.0)).id
    told = [
        (await backend.enter(Claim(LOCK, str(n), b"", session, shared=claim == "s"))).granted
        for n, claim in enumerate(claims)
    ]
    assert told == granted
    assert [entry.granted for entry in (await backend.entries(LOCK)).entries] == granted


async def test_a_fence_holds_only_for_the_present_grant(backend):
    one, two = [(await backend.open_session(5.0)).id for _ in range(2)]
    first = await backend.enter(Claim(LOCK, "1", b"", one))
    second = await backend.enter(Claim(LOCK, "2", b"", two))

    def write(token: Token) -> Commit:
        return Commit((Operation("upsert", "ns/k"),), fences=(Fence(LOCK, token),))

    await backend.commit(write(first.token))
    with pytest.raises(Fenced) as caught:
        await backend.commit(write(second.token))
    assert (caught.value.current_token, caught.value.index) == (first.token, 0)
    assert await backend.break_grant(LOCK)
    second = (await backend.entries(LOCK)).entries[0]
    assert (second.id, second.granted, second.token > first.token) == ("2", True, True)
    await backend.commit(write(second.token))
    with pytest.raises(Fenced):
        await backend.commit(write(first.token))
    await backend.leave(LOCK, "2", two, None)
    with pytest.raises(Fenced) as caught:
        await backend.commit(write(second.token))
    assert caught.value.current_token is None
    assert not await backend.break_grant(LOCK)


async def test_a_hundred_members_at_once_have_a_hundred_tokens(backend):
    session = (await backend.open_session(5.0)).id
    entered = await asyncio.gather(
        *(backend.enter(Claim(GROUP, str(n), b"", session)) for n in range(100))
    )
    assert len({entry.token for entry in entered}) == 100
    assert len((await backend.entries(GROUP)).entries) == 100


async def test_a_session_that_ended_is_refused(backend):
    opened = await backend.open_session(5.0)
    later = await backend.open_session(5.0)
    assert later.epoch > opened.epoch
    assert await backend.renew(opened.id) == opened.ttl_s
    await backend.end_session(opened.id)
    for call in (
        backend.renew(opened.id),
        backend.enter(Claim(GROUP, "id", b"", opened.id)),
        backend.commit(put("k", session=opened.id)),
    ):
        with pytest.raises(SessionLost):
            await call
    await backend.renew(later.id)


async def test_a_watch_shows_the_state_then_each_change(backend):
    await backend.commit(put("k", b"0"))
    watch = backend.watch(KeyScope("k"), None)
    shown = [await anext(watch)]
    for change in (
        Operation("update", "k", b"1"),
        Operation("delete", "k"),
        Operation("put", "k", b"2"),
    ):
        await backend.commit(Commit((change,)))
        shown.append(await anext(watch))
    assert [batch.kind for batch in shown] == ["snapshot", *["changes"] * 3]
    assert [batch.coalesced for batch in shown] == [False] * 4
    values = [batch.changes[0].record and batch.changes[0].record.value for batch in shown]
    assert values == [b"0", b"1", None, b"2"]
    assert [batch.revision for batch in shown] == sorted({batch.revision for batch in shown})
    await watch.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(watch)


async def test_what_a_watch_missed_is_flagged(backend):
    await backend.commit(put("k", b"0"))
    watch = backend.watch(KeyScope("k"), None)
    before = await anext(watch)
    await backend.commit(Commit((Operation("delete", "k"),)))
    await backend.commit(put("k", b"0"))
    while (batch := await anext(watch)).changes[0].record is None:
        assert not batch.coalesced
        before = None  # both changes were seen, one by one
    assert batch.coalesced == (before is not None)
    await watch.aclose()


async def test_a_prefix_shows_its_keys_only(backend):
    for key in ("a/1", "a/b/2", "ab", "b"):
        await backend.commit(put(key))
    watch = backend.watch(PrefixScope("a/"), None)
    assert [change.key for change in (await anext(watch)).changes] == ["a/1", "a/b/2"]
    made = await backend.commit(
        Commit((Operation("delete", "a/1"), Operation("put", "a/3"), Operation("put", "a/b/4")))
    )
    batch = await anext(watch)
    assert {(change.key, change.record is None) for change in batch.changes} == {
        ("a/1", True),
        ("a/3", False),
        ("a/b/4", False),
    }
    assert {change.revision for change in batch.changes} == {made.revision}
    later = backend.watch(PrefixScope("a/"), made.revision)
    await backend.commit(Commit((Operation("update", "a/3", b"new"),)))
    batch = await anext(later)
    assert [(c.key, c.record.value) for c in batch.changes] == [("a/3", b"new")]


BAD_SETTINGS = (
    ({"surprise": "1"}, None, "surprise"),
    ({}, Auth(token="t"), "token"),
)


@pytest.mark.parametrize(("options", "auth", "named"), BAD_SETTINGS)
async def test_settings_that_mean_nothing_are_refused(new_backend, options, auth, named):
    with pytest.raises(ConfigError, match=named):
        new_backend(auth, **options)


async def test_wrong_credentials_are_refused_at_open(new_backend, servers):
    right = servers.user or Auth("user", "right")
    owner = new_backend(right)
    await owner.open()
    await owner.commit(put("k"))
    for auth in (Auth(right.username, "wrong"), Auth("nobody", "x")):
        with pytest.raises(AuthFailed):
            await new_backend(auth).open()
    assert (await owner.get("k")).value == b"1"


async def test_the_next_server_is_asked_when_the_first_is_dead(new_backend, servers):
    backend = new_backend(endpoints=["127.0.0.1:9", *servers.endpoints])
    await backend.open()
    await backend.commit(put("k"))
    with pytest.raises(Unavailable):
        await new_backend(endpoints=["127.0.0.1:9"]).open()


async def test_every_error_is_ours(backend):
    await backend.aclose()
    with pytest.raises(CoordinationError):
        await backend.get("k")
    await backend.aclose()
