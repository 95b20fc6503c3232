"""People who ask agents, while they get pseudonyms, are erased and come back (kind `erasures`).

An agent of an odd broker has the cluster key, the others have none. In each second life, the agent
of broker 3 has the key of another cluster. `people_granter` changes what people may see.

- E7: an agent judges a person by the pseudonym that its image ties to the name, and by nothing
  else. It shows exactly the topics that the entries of the image allow. It refuses an erased
  pseudonym, and a login whose name has the form of a pseudonym. An agent without the controllers'
  cluster key refuses whoever comes by name once its image has a pseudonym. An agent with that key
  may let people wait until it has the keys of subjects. At rest it lets nobody wait.
- E1 of `erasing` holds for the keys of subjects that an agent has, too.

Rule: each answer is judged by the image that the agent had (`known_people`).
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from broker_agent.api import AgentApi
from broker_agent.people import AgentPeople
from broker_agent.publishers import Manifest, Publisher
from broker_agent.subject_keys import AgentSubjectKeys
from metadata.acl_rules import Enforcement
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.sealing import ClusterKey
from runtime.http.requests import Caller, Reply, Request, whole
from runtime.simulated.world import US
from tests.simulation.clients import FAR, KEY, NEAR
from tests.simulation.erasing import PEOPLE
from tests.simulation.known_people import BY_THE_LOG, KnownPeople
from tests.simulation.people_granter import NAMES, PeopleGranter
from tests.simulation.quorum_cluster import quiet_log

JUDGING: Final[dict[str, Any]] = {"authorization": Enforcement.ON}
"""The settings of agents that people ask."""
_ANOTHER_KEY: Final = ClusterKey(b"the key of another cluster, here")
_ASKS_PER_S: Final = 6.0
_AT_REST_S: Final = 20.0
_BY_NAME: Final = ("certificate", "scram")
_REFUSED, _WAIT, _NOT_SERVING = (
    "CLUSTER_AUTHORIZATION_FAILED",
    "THROTTLED",
    "BROKER_NOT_AVAILABLE",
)


class AskedAgent:
    """The parts of one life of an agent that people have to do with. It is a publisher."""

    def __init__(self, crowd: "PeopleAtAgents", incarnation: Any, requester: Any) -> None:
        self._crowd = crowd
        self.incarnation = incarnation
        clock = incarnation.process.clock
        self.key = crowd.key_of_next_life(incarnation.broker_id)
        self.has_key = self.key is not None and self.key.id == KEY.id
        self.people = AgentPeople(self.key, (), clock, lambda: incarnation.agent.image)
        self._keys: AgentSubjectKeys | None = None
        if self.key is not None:
            self._keys = AgentSubjectKeys(
                self.key,
                clock=clock,
                requester=requester,
                log=quiet_log(),
                on_keys=self.people.look,
            )
        self._requester = requester
        self.told: MetadataImage | None = None
        """The newest image of which the parts of the agent know."""

    @property
    def publishers(self) -> tuple[Publisher, ...]:
        """What the agent has to call, in this order."""
        own: tuple[Publisher, ...] = (self.people, self)
        return own if self._keys is None else (self._keys, *own)

    @property
    def image(self) -> MetadataImage:
        """What the agent shows now."""
        image: MetadataImage = self.incarnation.agent.image
        return image

    def follow(self) -> None:
        """The agent is made: let it fetch the keys of subjects, and answer."""
        agent = self.incarnation.agent
        if self._keys is not None:
            self._keys.follow(agent)
        self._api = AgentApi(
            agent,
            self._requester,
            clock=self.incarnation.process.clock,
            random=self._crowd.dice,
            people=self.people,
        )

    def on_metadata(self, before: MetadataImage, after: MetadataImage, manifest: Manifest) -> None:
        """Somebody asks at the moment in which the image comes."""
        self.told = after
        if after.erasures is not before.erasures:
            self._crowd.judge_keys(self)
            self._crowd.judge_names(self)

    def principal_of(self, caller: Caller) -> str:
        """Return by whom a host judges a caller, or a code."""
        try:
            return self.people.principal_of(caller)
        except LogbergError as error:
            return error.code

    def topics_for(self, caller: Caller) -> list[str] | str:
        """Return the topics that the agent's own interface shows to a caller, or a code."""
        replies: list[Reply] = []
        headers = {"accept": "application/json"}
        self._api.handle(
            Request("GET", "/v1/metadata", headers=headers, caller=caller), replies.append
        )
        (reply,) = map(whole, replies)
        said = json.loads(reply.body)
        return [each["name"] for each in said["topics"]] if reply.status == 200 else said["code"]


class Due(NamedTuple):
    """What an agent owes a caller by its image."""

    principal: str | None
    """By whom the caller is judged; None: the caller is refused."""
    may_wait: bool
    """Whether the agent may not know yet."""


class PeopleAtAgents:
    """The people of a cluster, and what agents tell them. Idle unless the shape asks for it."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._granter = PeopleGranter(cluster)
        self._known = KnownPeople(self._key_for)
        self._lives: Counter[int] = Counter()
        """Of agents, by broker."""
        self._agents: dict[Any, AskedAgent] = {}
        """By broker: the newest life."""
        self.dice = cluster.world.random("people at agents")
        self.facts: Counter[str] = Counter()

    def start(self) -> None:
        """Let the administrator begin; people ask each agent from its own beginning."""
        self._granter.start()

    def key_of_next_life(self, broker_id: int) -> ClusterKey | None:
        """Return the cluster key that a broker's agent has in the life that begins."""
        self._lives[broker_id] += 1
        if broker_id % 2 == 0:
            return None
        another = broker_id == 3 and self._lives[broker_id] % 2 == 0
        return (_ANOTHER_KEY if another else KEY).copy()

    def publishers_of(self, incarnation: Any, requester: Any) -> tuple[Publisher, ...]:
        """Return what the agent of an incarnation has to call; `follow` lets people ask it."""
        asked = self._agents[incarnation.broker_id] = AskedAgent(self, incarnation, requester)
        return asked.publishers

    def follow(self, incarnation: Any) -> None:
        """Let people ask the agent of an incarnation."""
        asked = self._agents[incarnation.broker_id]
        asked.follow()
        self._plan(asked)

    def _plan(self, asked: AskedAgent) -> None:
        def go() -> None:
            if self._cluster.busy:
                self._judge(asked, self._somebody())
                self._plan(asked)

        delay = int(self.dice.expovariate(_ASKS_PER_S) * US)
        asked.incarnation.process.schedule(delay, go, "people")

    def _somebody(self) -> Caller:
        """Draw who asks: mostly a person by name, but also whoever the log names, or nobody may."""
        what, address = self.dice.random(), self.dice.choice((NEAR, FAR))
        pseudonyms = list(self._known.pseudonyms)
        if what < 0.7 or not pseudonyms:
            name, method = self.dice.choice(self._names()), self.dice.choice(_BY_NAME)
        else:
            # The newest ones, of whom some are not erased.
            name = self.dice.choice(pseudonyms[-8:])
            method = BY_THE_LOG if what < 0.9 else self.dice.choice(_BY_NAME)
        return Caller(f"User:{name}", method, address)

    def _names(self) -> list[str]:
        return list(dict.fromkeys(chain(NAMES, self._known.pseudonyms.values())))

    def _by_name(self) -> Iterator[Caller]:
        for name in self._names():
            yield Caller(f"User:{name}", _BY_NAME[0], NEAR)

    # -- E7 -----------------------------------------------------------------------------------

    def _due(self, asked: AskedAgent, caller: Caller) -> Due:
        image = asked.image
        principal = self._known.judged_as(image, caller)
        by_name = principal is not None and caller.method != BY_THE_LOG
        if not by_name or not self._known.tied(image):
            return Due(principal, may_wait=False)
        return Due(principal if asked.has_key else None, may_wait=asked.has_key)

    def judge_names(self, asked: AskedAgent) -> None:
        """Ask by whom an agent judges everybody."""
        for caller in self._by_name():
            self._judge_principal(asked, caller, self._due(asked, caller))

    def _judge(self, asked: AskedAgent, caller: Caller) -> None:
        self.judge_keys(asked)
        due = self._due(asked, caller)
        self._judge_principal(asked, caller, due)
        self._judge_topics(asked, caller, due)

    def _judge_principal(self, asked: AskedAgent, caller: Caller, due: Due) -> None:
        said = asked.principal_of(caller)
        if said == _WAIT and due.may_wait:
            self.facts["people: told to wait"] += 1
        elif said != (due.principal or _REFUSED):
            self._fail(asked, caller, f"judges as {said}", due)
        elif due.principal is None:
            why = "by name" if caller.principal.endswith(PEOPLE) else "by pseudonym"
            self.facts[f"people: refused {why}"] += 1
        else:
            pseudonym = due.principal != caller.principal
            self.facts[f"people: known by {'pseudonym' if pseudonym else 'name'}"] += 1

    def _judge_topics(self, asked: AskedAgent, caller: Caller, due: Due) -> None:
        shown = asked.topics_for(caller)
        if (shown == _WAIT and due.may_wait) or (due.principal is None and shown == _REFUSED):
            return
        if shown == _NOT_SERVING and due.principal and not asked.incarnation.agent.may_serve():
            return
        if due.principal is None or isinstance(shown, str):
            self._fail(asked, caller, f"shows {shown}", due)
            return
        topics = self._known.shown(asked.image, due.principal, caller.address)
        if shown != topics:
            self._fail(asked, caller, f"shows {shown} and not {topics}", due)
        hidden = len(topics) < len(list(asked.image.topics.names))
        self.facts[f"people: shown {'some' if hidden else 'all'} topics"] += 1

    def _fail(self, asked: AskedAgent, caller: Caller, what: str, due: Due) -> None:
        key = "with the key" if asked.has_key else "without the key"
        who = f"the agent of broker {asked.incarnation.broker_id}, {key},"
        self._cluster.world.fail(f"E7: {who} {what}: {caller}; due is {due}", None)

    # -- E1 -----------------------------------------------------------------------------------

    def judge_keys(self, asked: AskedAgent) -> None:
        """Look what an agent can open."""
        if asked.key is None or asked.told is None:
            return
        for record in asked.told.erasures.erased.values():
            if any(asked.key.subjects.key_of(number) is not None for number in record.numbers):
                who = f"the agent of broker {asked.incarnation.broker_id}"
                self._cluster.world.fail(f"E1: {who} can make the key of {record.subject}", None)

    def _key_for(self, tree_id: bytes) -> ClusterKey:
        key = KEY.copy()
        key.subjects.keys = self._cluster.trees[tree_id]
        return key

    # -- at the end ---------------------------------------------------------------------------

    def at_the_end(self) -> Counter[str]:
        """Everybody is told apart at rest. Returns what was seen."""
        agents = [self._agents[broker_id] for broker_id in self._cluster.brokers]
        if not self._cluster.world.run_for(_AT_REST_S, lambda: not any(map(self._waiting, agents))):
            waiting = [each.incarnation.broker_id for each in agents if self._waiting(each)]
            self._cluster.world.fail(f"E7: agents of {waiting} let people wait at rest", None)
        for asked in agents:
            for caller in self._by_name():
                self._judge(asked, caller)
            self.facts["people: agents at rest " + ("with" if asked.has_key else "without")] += 1
        return self.facts + self._granter.facts

    def _waiting(self, asked: AskedAgent) -> bool:
        return any(asked.principal_of(caller) == _WAIT for caller in self._by_name())
