"""An agent judges people by their pseudonyms, and refuses whom it can't tell apart."""

from typing import Any

import msgspec
import pytest

from broker_agent.api import AgentApi
from broker_agent.people import AgentPeople
from metadata.errors import ErrorCode, LogbergError
from metadata.image import EMPTY, MetadataImage
from metadata.messages.callers import CALLER, CallerReply
from metadata.messages.clients import ClientMetadata
from metadata.messages.wire import JSON, MSGPACK, decode, encode
from metadata.pseudonyms import UNKNOWN, pseudonym_of
from metadata.records import Record
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys
from runtime.http.requests import ANONYMOUS, UNIX_SOCKET, Caller, Reply, whole
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.world import World
from tests.unit.broker_agent.fake_cluster import dice, partition, topic
from tests.unit.broker_agent.rig import ONE, Rig
from tests.unit.broker_agent.test_api import Front
from tests.unit.broker_agent.tied_names import (
    ALICE,
    ALICES,
    BOB,
    CAROLS,
    P_ALICE,
    ROOT,
    TREE,
    describing,
    erased,
    key_with,
    keys_named,
    tied,
)
from tests.unit.image.replaying import replayed

NO_TIES = replayed(*keys_named())
TIED = replayed(tied(), tied(CAROLS, "carol"), image=NO_TIES)
ERASED = replayed(erased(), image=TIED)
ALL_ERASED = replayed(erased(CAROLS), image=ERASED)

NO_KEY, HERE = None, key_with()
ANOTHER_KEY = key_with(secret=b"\x01" * 32)
AWAITED, ANOTHER_TREE = key_with(None), key_with(SubjectKeys.of_root(bytes(32)))
REFUSED, LATER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.THROTTLED


class Hurried:
    """A clock on which each look at the time takes a millisecond, so that work needs slices."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self._looks = 0
        self.call_soon, self.call_later = clock.call_soon, clock.call_later
        self.wall_ms = clock.wall_ms

    def monotonic(self) -> float:
        self._looks += 1
        return float(self._clock.monotonic()) + self._looks / 1_000


class JudgingAgent:
    """Who judges callers of an agent. The test plays the images and the keys."""

    def __init__(self, image: MetadataImage = EMPTY, key: ClusterKey | None = HERE) -> None:
        self.world = World(1)
        host = SimulatedHost(self.world, SimulatedNetwork(self.world), 1)
        self.clock = Hurried(host.boot().clock)
        self.image = image
        self.people = AgentPeople(key, {"User:root"}, self.clock, lambda: self.image)

    def judged(self, caller: Caller = ALICE) -> str | ErrorCode:
        try:
            return self.people.principal_of(caller)
        except LogbergError as error:
            assert caller.principal.startswith("User:")
            return error.code

    def show(self, image: MetadataImage) -> None:
        before, self.image = self.image, image
        manifest: Any = None
        self.people.on_metadata(before, image, manifest)


def by(method: str, principal: str = ALICE.principal) -> Caller:
    return Caller(principal, method, "10.0.0.7")


@pytest.mark.parametrize(
    "method", ["certificate", "scram", UNIX_SOCKET, "of a host", "delegation-token"]
)
@pytest.mark.parametrize(
    ("image", "key", "judged"),
    [
        (EMPTY, NO_KEY, "User:alice"),
        (NO_TIES, NO_KEY, "User:alice"),
        (NO_TIES, AWAITED, "User:alice"),
        (TIED, NO_KEY, REFUSED),
        (TIED, ANOTHER_KEY, REFUSED),
        (TIED, AWAITED, LATER),
        (TIED, ANOTHER_TREE, LATER),
        (TIED, HERE, P_ALICE),
        (ERASED, HERE, "User:alice"),
        (ERASED, NO_KEY, REFUSED),
        (ALL_ERASED, NO_KEY, "User:alice"),
    ],
)
def test_a_name_is_judged_by_what_the_image_ties_it_to(
    image: MetadataImage, key: ClusterKey | None, judged: str | ErrorCode, method: str
) -> None:
    """A delegation token from before the setting has a name as its owner."""
    assert JudgingAgent(image, key).judged(by(method)) == judged


@pytest.mark.parametrize("key", [NO_KEY, AWAITED, HERE])
@pytest.mark.parametrize(
    "caller",
    [
        ROOT,
        by("certificate", "Broker:7"),
        by("certificate", "Controller:1"),
        by("scram", "Broker:7"),
        ANONYMOUS,
        # The controllers checked the token, and answer the pseudonym of whoever has one.
        by("token"),
        by("token", P_ALICE),
        by("delegation-token", P_ALICE),
    ],
)
def test_who_is_no_person_or_has_the_pseudonym_already_needs_no_key(
    caller: Caller, key: ClusterKey | None
) -> None:
    assert JudgingAgent(TIED, key).judged(caller) == caller.principal


@pytest.mark.parametrize("image", [EMPTY, TIED, ALL_ERASED])
@pytest.mark.parametrize("principal", [P_ALICE, UNKNOWN])
@pytest.mark.parametrize("method", ["certificate", "scram", UNIX_SOCKET, "of a host"])
def test_nobody_logs_in_under_a_pseudonym(method: str, principal: str, image: Any) -> None:
    assert JudgingAgent(image).judged(by(method, principal)) is REFUSED


def test_nobody_else_has_the_pseudonym() -> None:
    assert JudgingAgent(TIED).judged(BOB) == "User:bob"


def test_whoever_may_have_a_pseudonym_that_no_key_opens_is_refused_for_now() -> None:
    judging = JudgingAgent(TIED, key_with(TREE.without([CAROLS])))
    assert judging.judged() == P_ALICE
    assert judging.judged(BOB) is LATER


@pytest.mark.parametrize("method", ["token", "delegation-token"])
def test_a_login_from_before_the_erasure_is_no_longer_judged_by_the_pseudonym(method: str) -> None:
    judging = JudgingAgent(TIED)
    assert judging.judged(by(method, P_ALICE)) == P_ALICE
    judging.show(ERASED)
    assert judging.judged(by(method, P_ALICE)) is REFUSED


def test_an_erasure_makes_the_pseudonym_unknown_again() -> None:
    judging = JudgingAgent(TIED)
    assert judging.judged() == P_ALICE
    judging.show(ERASED)
    assert judging.people._people.name_of(pseudonym_of(ALICES)) is None
    assert judging.judged() == "User:alice"
    again = b"87654321"
    judging.show(replayed(tied(again), image=ERASED))
    assert judging.judged() == f"User:{pseudonym_of(again)}"


def test_an_erasure_of_everybody_leaves_no_name_in_memory() -> None:
    judging = JudgingAgent(TIED)
    assert judging.judged() == P_ALICE
    judging.show(ALL_ERASED)
    assert judging.people._people.name_of(pseudonym_of(CAROLS)) is None


class TestManyNames:
    """More than a request may wait for are opened beside other work."""

    NUMBERS = tuple(number.to_bytes(8, "big") for number in range(1, 201))
    MANY = replayed(*(tied(each, f"user-{each.hex()}") for each in NUMBERS), image=NO_TIES)
    EVERYBODY = tuple(by("certificate", f"User:user-{each.hex()}") for each in NUMBERS)
    PSEUDONYMS = tuple(f"User:{pseudonym_of(each)}" for each in NUMBERS)
    LAST, P_LAST = EVERYBODY[-1], PSEUDONYMS[-1]

    def judged(self, judging: JudgingAgent) -> tuple[str | ErrorCode, ...]:
        return tuple(map(judging.judged, self.EVERYBODY))

    def test_nobody_is_judged_before_all_are_opened(self) -> None:
        judging = JudgingAgent(self.MANY)
        assert set(self.judged(judging)) == {LATER}
        judging.world.run_for(5.0)
        assert self.judged(judging) == self.PSEUDONYMS

    def test_they_are_opened_when_the_image_comes(self) -> None:
        judging = JudgingAgent()
        judging.show(self.MANY)
        judging.world.run_for(5.0)
        assert judging.judged(self.LAST) == self.P_LAST

    def test_they_are_opened_when_the_keys_come(self) -> None:
        key = key_with(None)
        judging = JudgingAgent(self.MANY, key)
        judging.show(self.MANY)
        assert judging.judged(self.LAST) is LATER
        key.subjects.keys = TREE
        judging.people.look()
        judging.world.run_for(5.0)
        assert judging.judged(self.LAST) == self.P_LAST

    def test_an_image_that_comes_meanwhile_is_followed_next(self) -> None:
        judging = JudgingAgent(self.MANY)
        assert judging.judged(self.LAST) is LATER
        judging.show(replayed(tied(), erased(self.NUMBERS[-1]), image=self.MANY))
        judging.world.run_for(5.0)
        assert (judging.judged(), judging.judged(self.LAST)) == (P_ALICE, self.LAST.principal)

    def test_keys_that_were_away_meanwhile_leave_no_name_without_its_pseudonym(self) -> None:
        """A name that can't be opened would look like one that has no pseudonym."""
        key = key_with()
        judging = JudgingAgent(self.MANY, key)
        assert judging.judged(self.LAST) is LATER
        key.subjects.keys = None
        # Behind the next slice, and before the last.
        judging.clock.call_soon(lambda: setattr(key.subjects, "keys", TREE))
        judging.world.run_for(5.0)
        assert set(self.judged(judging)) == {LATER}
        judging.world.run_for(5.0)
        assert self.judged(judging) == self.PSEUDONYMS

    def test_the_end_of_an_agent_opens_nothing_more(self) -> None:
        judging = JudgingAgent(self.MANY)
        assert judging.judged(self.LAST) is LATER
        people = judging.people._people
        opened = len(people._names)
        judging.people.end()
        judging.world.run_for(5.0)
        assert 0 < opened == len(people._names) < len(self.NUMBERS)


def test_other_keys_open_the_names_anew() -> None:
    key = key_with()
    judging = JudgingAgent(TIED, key)
    assert judging.judged() == P_ALICE
    key.subjects.keys = None
    judging.show(TIED)
    assert judging.people._people.name_of(pseudonym_of(ALICES)) is None
    assert judging.judged() is LATER
    key.subjects.keys = TREE
    assert judging.judged() == P_ALICE


class DenyingFront(Front):
    """An agent that enforces rights. Everybody may describe its two topics, but for one pseudonym.

    That may not describe topic-2.
    """

    def __init__(self, key: ClusterKey | None = HERE) -> None:
        self.rig = Rig(urls=(ONE,), authorization="on", super_users=frozenset({"User:root"}))
        for number in (1, 2):
            self.rig.log.append(topic(number), partition(number, 0, (7, 8), 7))
        self.rig.log.append(*keys_named(), tied())
        self.rig.log.append(
            describing("User:*", "topic-1", allow=True, number=1),
            describing("User:*", "topic-2", allow=True, number=2),
            describing(P_ALICE, "topic-2", allow=False, number=3),
        )
        self.api = AgentApi(
            self.rig.agent,
            self.rig.controllers,
            clock=self.rig.clock,
            random=dice(),
            people=self.rig.people(key),
            # These controllers are reached over plain HTTP.
            forward_anonymous=True,
        )
        self.rig.online()

    def commit(self, *records: Record) -> None:
        self.rig.do(lambda: self.rig.active.commit(*records))
        self.rig.run(0.1)

    def names(self, caller: Caller = ALICE, **headers: str) -> list[str] | ErrorCode:
        reply = self.ask("GET", "/v1/metadata", b"", caller, **headers)
        if reply.status != 200:
            return self.refused(reply).known_code()
        return [each.name for each in decode(ClientMetadata, whole(reply).body, JSON).topics]

    def controllers_say(self, principal: str) -> None:
        on_fetch = self.rig.controllers.on_ask
        body = encode(CallerReply(principal, "token"), MSGPACK)

        def on_ask(asked: Any) -> None:
            if asked.request.path == CALLER:
                asked.give(Reply(200, body, {"content-type": MSGPACK}))
            else:
                on_fetch(asked)

        self.rig.controllers.on_ask = on_ask


def test_an_entry_that_denies_a_pseudonym_hides_the_topic_from_the_person() -> None:
    front = DenyingFront()
    assert front.names() == ["topic-1"]
    assert front.names(BOB) == front.names(ROOT) == ["topic-1", "topic-2"]
    front.commit(erased())
    assert front.names() == ["topic-1", "topic-2"]


@pytest.mark.parametrize(("key", "code"), [(NO_KEY, REFUSED), (AWAITED, LATER)])
def test_an_agent_that_cannot_open_the_names_shows_people_nothing(
    key: ClusterKey | None, code: ErrorCode
) -> None:
    front = DenyingFront(key)
    assert front.names() is front.names(BOB) is code
    assert front.names(ROOT) == ["topic-1", "topic-2"]
    assert front.names(Caller("User:kafka", UNIX_SOCKET)) == ["topic-1", "topic-2"]
    front.controllers_say(P_ALICE)
    assert front.names(ANONYMOUS, authorization="Bearer t") == ["topic-1"]
    for path in ("/health/live", "/v1/agent"):
        assert front.ask("GET", path).status == 200
    front.commit(erased())
    assert front.names() == ["topic-1", "topic-2"]


def test_the_controllers_get_the_name_and_nobody_s_own_pseudonym() -> None:
    """The controllers put the pseudonym in. They believe the agent that a caller has the name."""
    front = DenyingFront(NO_KEY)

    def forwarded(caller: Caller) -> str | ErrorCode:
        known = len(front.forwarded)
        reply = front.ask("GET", "/v1/topics", caller=caller)
        if len(front.forwarded) == known:
            return front.refused(reply).known_code()
        return front.forwarded[-1].request.headers["x-logberg-on-behalf-of"]

    assert forwarded(ALICE) == "User:alice"
    assert forwarded(by("delegation-token", P_ALICE)) == P_ALICE
    for method in ("certificate", "scram"):
        assert forwarded(msgspec.structs.replace(by(method), principal=P_ALICE)) is REFUSED
