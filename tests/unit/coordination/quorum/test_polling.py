"""Watches on the controllers: many in one held request, none stopped by another one's fault."""

import asyncio
from typing import Any

import pytest
import structlog

from coordination.backend import KeyScope, PrefixScope, Resource, WatchBatch, WatchScope
from coordination.backends.quorum.polling import PROGRESS_S, SCOPES_PER_POLL, Poll, QuorumWatch
from coordination.errors import AuthFailed, ConfigError, InvalidKey, Unavailable
from coordination.types import Record, Revision
from metadata.errors import ErrorCode
from metadata.messages.coordination import EntryDescription, KeyDescription
from metadata.messages.coordination_watch import (
    CoordinationWatchReply,
    CoordinationWatchRequest,
    KeyChangeReply,
    ScopeNews,
)
from metadata.messages.wire import MSGPACK, decode
from runtime.http.requests import Reply
from tests.unit.coordination.quorum.scripted_controllers import (
    LOST,
    REFUSED,
    A,
    Answer,
    AskedOnce,
    B,
    ScriptedControllers,
    ok,
    page,
    refusal,
    requests_to,
)
from tests.unit.coordination.virtual_loop import virtual

CODE = ErrorCode
K, P, L = KeyScope("k"), PrefixScope("p/"), Resource("lock", "l")


def described(key: str, revision: int) -> KeyDescription:
    return KeyDescription(key, b"v", revision, revision, 1)


def record(key: str, revision: int) -> Record:
    return Record(key, b"v", Revision(revision), Revision(revision), 1)


def news(revision: int, *scopes: ScopeNews) -> Reply:
    return ok(CoordinationWatchReply(revision=revision, scopes=scopes, offset=revision, epoch=1))


class Watching:
    """A poll over scripted controllers."""

    def __init__(self, answers: dict[str, list[Answer]], *urls: str) -> None:
        self.controllers = ScriptedControllers(answers)
        self.lists: list[str] = []
        self.listed: list[Any] = []
        self.requests = requests_to(self.controllers, *urls)
        self.poll = Poll(self.requests, lambda: Revision(5), self._list_all, structlog.get_logger())

    async def _list_all(self, prefix: str) -> tuple[Revision, tuple[Record, ...]]:
        self.lists.append(prefix)
        listed = self.listed.pop(0)
        if isinstance(listed, Exception):
            raise listed
        revision: int = listed
        return Revision(revision), (record(f"{prefix}a", revision),)

    def asked(self, number: int = -1) -> list[tuple[object, int | None]]:
        """Of a request: what it watches, and after which revision."""
        body = self.controllers.asked[number].request.body
        request = decode(CoordinationWatchRequest, body, MSGPACK)
        assert request.min_revision == 5
        return [(each.key or each.prefix or each.name, each.after) for each in request.scopes]


async def first(watch: QuorumWatch) -> WatchBatch:
    async with asyncio.timeout(60):
        return await anext(watch)


@virtual
async def test_each_batch_goes_to_its_watch_and_the_next_request_goes_on_behind_it() -> None:
    change = KeyChangeReply("k", 9, None)
    entry = EntryDescription(
        kind="lock",
        name="l",
        id="a",
        session_id="s",
        data=b"d",
        shared=False,
        granted=True,
        place=3,
        token=8,
        revision=8,
    )
    at = Watching(
        {
            A: [
                news(
                    10,
                    ScopeNews(0, "changes", changes=(change,)),
                    ScopeNews(1, "snapshot", records=(described("p/a", 4),)),
                    ScopeNews(2, "snapshot", entries=(entry,)),
                ),
                None,
            ]
        }
    )
    key, prefix, lock = at.poll.add(K, Revision(6)), at.poll.add(P, None), at.poll.add(L, None)
    assert [(c.key, c.record, c.revision) for c in (await first(key)).changes] == [("k", None, 9)]
    shown = await first(prefix)
    assert (shown.kind, shown.revision) == ("snapshot", 10)
    assert [each.record for each in shown.changes] == [record("p/a", 4)]
    entries = (await first(lock)).entries
    assert entries is not None
    assert [each.id for each in entries.entries] == ["a"]
    assert at.asked(0) == [("k", 6), ("p/", None), ("l", None)]
    await asyncio.sleep(0.1)
    assert at.asked() == [("k", 10), ("p/", 10), ("l", 10)]
    await at.poll.aclose()


@virtual
async def test_a_watch_without_news_makes_progress() -> None:
    at = Watching({A: [news(10, ScopeNews(0, "snapshot")), news(11), None]})
    watch = at.poll.add(K, None)
    assert (await first(watch)).kind == "snapshot"
    batch = await first(watch)
    assert (batch.kind, batch.revision) == ("progress", 11)
    await at.poll.aclose()


@virtual
async def test_a_busy_watch_does_not_wake_its_neighbours_each_time() -> None:
    changes = [KeyChangeReply("k", revision, None) for revision in range(10, 1200)]
    told = [news(each.revision, ScopeNews(0, "changes", changes=(each,))) for each in changes]
    at = Watching({A: [*told, None]})
    busy, quiet = at.poll.add(K, Revision(6)), at.poll.add(P, Revision(6))
    for change in changes:
        assert (await first(busy)).revision == change.revision
    # 1,190 answers, 10 ms apart, are 12 s.
    batches = [await first(quiet), await first(quiet)]
    assert [batch.kind for batch in batches] == ["progress", "progress"]
    assert batches[1].revision - batches[0].revision == pytest.approx(PROGRESS_S / 0.01, abs=5)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await anext(quiet)
    assert at.asked()[1] == ("p/", 1199)
    await at.poll.aclose()


@virtual
async def test_watches_follow_at_once_when_the_client_has_found_another_leader() -> None:
    at = Watching({A: [None], B: [news(10, ScopeNews(0, "snapshot")), None]}, A, B)
    watch = at.poll.add(K, None)
    await asyncio.sleep(1)
    assert at.requests.follow(A, B)
    begun = at.requests.clock.monotonic()
    assert (await first(watch)).kind == "snapshot"
    assert at.requests.clock.monotonic() - begun < 0.05
    await at.poll.aclose()


@virtual
async def test_a_new_watch_does_not_wait_for_the_request_under_way() -> None:
    at = Watching({A: [None]})
    old = at.poll.add(K, Revision(6))
    await asyncio.sleep(0.05)
    at.controllers.answers[A] = [news(10, ScopeNews(1, "snapshot")), None]
    begun = at.requests.clock.monotonic()
    assert (await first(at.poll.add(P, None))).kind == "snapshot"
    assert at.requests.clock.monotonic() - begun < 0.1
    assert at.asked(1) == [("k", 6), ("p/", None)]
    await old.aclose()
    await at.poll.aclose()


@virtual
async def test_a_prefix_with_too_many_keys_is_listed_and_watched_behind_the_list() -> None:
    large = ScopeNews(0, "snapshot", truncated=True)
    at = Watching({A: [news(10, large), news(10, large), None]})
    at.listed = [Unavailable("while it lists"), 12]
    batch = await first(at.poll.add(P, None))
    assert (batch.kind, batch.revision) == ("snapshot", 12)
    await asyncio.sleep(0.2)
    assert at.lists == ["p/", "p/"]
    assert at.asked() == [("p/", 12)]
    await at.poll.aclose()


@virtual
async def test_what_a_controller_postpones_is_asked_for_again() -> None:
    postponed = ScopeNews(1, "postponed")
    later = news(11, ScopeNews(1, "snapshot"))
    at = Watching({A: [news(10, ScopeNews(0, "snapshot"), postponed), later, None]})
    first_watch, second = at.poll.add(K, None), at.poll.add(P, None)
    assert (await first(first_watch)).revision == 10
    assert (await first(second)).revision == 11
    assert at.asked(1) == [("k", 10), ("p/", None)]
    await at.poll.aclose()


NEXT: dict[str, tuple[Answer, float]] = {
    "isn't there": (REFUSED, 0.3),
    "hangs up": (LOST, 0.3),
    "doesn't lead": (refusal(CODE.NOT_CONTROLLER), 0.3),
    "names the leader": (refusal(CODE.NOT_CONTROLLER, leader=B), 0.3),
    "is cut off": (refusal(CODE.NO_QUORUM, after_ms=1000), 1.3),
    "has a defect": (refusal(CODE.UNKNOWN_SERVER_ERROR), 0.3),
    "is something else": (page(200), 0.3),
    "hangs": (None, 7.3),
}


@pytest.mark.parametrize("script", NEXT.values(), ids=NEXT.keys())
@virtual
async def test_watches_go_on_at_another_controller_when_one(script: tuple[Answer, float]) -> None:
    answer, within_s = script
    at = Watching({A: [answer], B: [news(10, ScopeNews(0, "snapshot")), None]}, A, B)
    begun = at.requests.clock.monotonic()
    watch = at.poll.add(K, None)
    assert (await first(watch)).kind == "snapshot"
    assert at.requests.clock.monotonic() - begun < within_s
    assert at.requests.url == B
    await at.poll.aclose()


@virtual
async def test_watches_follow_the_leader_that_another_request_found() -> None:
    at = Watching({A: [None], B: [news(10, ScopeNews(0, "snapshot")), None]}, A, B)
    watch = at.poll.add(K, None)
    await asyncio.sleep(1.0)
    at.requests.try_next(A)
    begun = at.requests.clock.monotonic()
    assert (await first(watch)).kind == "snapshot"
    assert at.requests.clock.monotonic() - begun < 0.3
    await at.poll.aclose()


@virtual
async def test_a_scope_that_the_controllers_refuse_ends_its_own_watch_alone() -> None:
    bad = refusal(CODE.INVALID_KEY, field="scopes[1].key")
    at = Watching({A: [bad, news(10, ScopeNews(0, "snapshot")), None]})
    good, refused = at.poll.add(K, None), at.poll.add(KeyScope("\x01"), None)
    with pytest.raises(InvalidKey):
        await first(refused)
    assert (await first(good)).kind == "snapshot"
    assert at.asked(1) == [("k", None)]
    await refused.aclose()
    await at.poll.aclose()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal(CODE.UNAUTHENTICATED), AuthFailed),
        (refusal(CODE.CLUSTER_AUTHORIZATION_FAILED), AuthFailed),
        (refusal(CODE.UNSUPPORTED_VERSION), ConfigError),
    ],
)
@virtual
async def test_what_concerns_the_client_ends_all_watches_and_asks_no_more(
    answer: Answer, error: type[Exception]
) -> None:
    at = Watching({A: [answer]})
    watches: list[QuorumWatch] = [at.poll.add(scope, None) for scope in (K, P, L)]
    for watch in watches:
        with pytest.raises(error):
            await first(watch)
    count = len(at.controllers.asked)
    await asyncio.sleep(60)
    assert len(at.controllers.asked) == count
    at.controllers.answers[A] = [news(10, ScopeNews(0, "snapshot")), None]
    assert (await first(at.poll.add(K, None))).kind == "snapshot", "a new watch asks again"
    await at.poll.aclose()


@virtual
async def test_the_last_closed_watch_ends_the_request() -> None:
    at = Watching({A: [None]})
    watches = [at.poll.add(scope, None) for scope in (K, P)]
    waiting = asyncio.create_task(first(watches[0]))
    await asyncio.sleep(0.1)
    for watch in watches:
        await watch.aclose()
        await watch.aclose()
    with pytest.raises(StopAsyncIteration):
        await waiting
    count = len(at.controllers.asked)
    await asyncio.sleep(60)
    assert len(at.controllers.asked) == count


@virtual
async def test_a_poll_is_full_at_its_limit() -> None:
    at = Watching({A: [None]})
    scopes: list[WatchScope] = [KeyScope(str(number)) for number in range(SCOPES_PER_POLL)]
    watches = []
    for scope in scopes:
        assert not at.poll.full
        watches.append(at.poll.add(scope, None))
    assert at.poll.full
    await watches[0].aclose()
    assert not at.poll.full
    await at.poll.aclose()


@virtual
async def test_a_watch_that_is_closed_while_news_are_on_the_way_disturbs_no_other() -> None:
    at = Watching({A: [None]})
    other, closed = at.poll.add(K, None), at.poll.add(P, None)
    closing: list[asyncio.Future[None]] = []

    def answered(_: AskedOnce) -> None:
        closing.append(asyncio.ensure_future(closed.aclose()))

    at.controllers.on_request = answered
    at.controllers.answers[A] = [
        news(10, ScopeNews(0, "snapshot"), ScopeNews(1, "snapshot")),
        None,
    ]
    assert (await first(other)).revision == 10
    await asyncio.gather(*closing)
    await at.poll.aclose()
