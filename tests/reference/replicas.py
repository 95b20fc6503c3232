"""A second set of rules for partitions: what each event and request makes of them.

Written from Kafka's rules of replication (sections 1 to 9), from KIP-1066 for cordoned directories,
and from ADR 0028, 0030 and 0036, which say where we follow newer rules or decide otherwise. Plain
sets and lists, one partition after another, nothing incremental.

Rule: this module knows nothing of the product. A request that is refused raises `Refused`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tests.reference.one_partition import NOBODY, Ids, Replicas, completed, elected, emptied
from tests.reference.placing import Place, breaks

UNASSIGNED = "unassigned"
"""The directory of a replica whose broker has not said where it lies."""


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """The code of the error that a request gets."""


@dataclass
class Node:
    """A broker's registration."""

    epoch: int = -1
    directories: tuple[str, ...] = ()
    """Those that work (KIP-858)."""
    fenced: bool = True
    stopping: bool = False
    rack: str | None = None
    cordoned: tuple[str, ...] = ()
    """Directories that take no new replicas (KIP-1066)."""

    @property
    def closed(self) -> bool:
        """No new replica may be put here."""
        return bool(self.directories) and set(self.directories) <= set(self.cordoned)

    @property
    def active(self) -> bool:
        return not self.fenced and not self.stopping


@dataclass
class Topic:
    """A topic's partitions, and its configs that matter here; None: the cluster's."""

    partitions: list[Replicas]
    min_isr: int | None = None
    unclean: bool | None = None


class Machine:
    """All brokers and topics. A method is an event, or a request that was accepted."""

    def __init__(self, min_isr: int) -> None:
        self.min_isr = min_isr
        self.elr = False
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, Topic] = {}

    # -- topics (section 2) ------------------------------------------------------------------

    def create(self, name: str, lists: Iterable[Ids]) -> None:
        """A topic whose replicas the request lists."""
        self._check_new(name)
        self.topics[name] = Topic([self._new(replicas) for replicas in lists])

    def create_placed(self, name: str, factor: int, found: list[Ids]) -> None:
        """A topic whose replicas the controller places (section 3). `found`: where it put them."""
        self._check_new(name)
        self._check_placed(factor, found)
        self.topics[name] = Topic([self._new(replicas) for replicas in found])

    def _check_new(self, name: str) -> None:
        if name in self.topics:
            raise Refused("TOPIC_ALREADY_EXISTS")

    def add_partitions(self, name: str, count: int, lists: list[Ids]) -> None:
        """`count`: how many there shall be in all. The request lists the replicas."""
        there = self._grown(name, count)
        if count - len(there) != len(lists):
            raise Refused("INVALID_REPLICA_ASSIGNMENT")
        factor = len(there[0].replicas)
        if any(len(replicas) != factor for replicas in lists):
            raise Refused("INVALID_REPLICA_ASSIGNMENT")
        new = [self._new(replicas) for replicas in lists]
        there += new

    def add_placed(self, name: str, count: int, found: list[Ids]) -> None:
        """`found`: where the controller put the replicas of all partitions, old and new."""
        there = self._grown(name, count)
        added = found[len(there) :]
        self._check_placed(len(there[0].replicas), added)
        there += [self._new(replicas) for replicas in added]

    def _grown(self, name: str, count: int) -> list[Replicas]:
        if name not in self.topics:
            raise Refused("UNKNOWN_TOPIC_OR_PARTITION")
        there = self.topics[name].partitions
        if count <= len(there):
            raise Refused("INVALID_PARTITIONS")
        return there

    def _check_placed(self, factor: int, found: list[Ids]) -> None:
        usable = {
            number: Place(node.rack, node.fenced)
            for number, node in self.nodes.items()
            if not node.stopping and not node.closed
        }
        if not 1 <= factor <= len(usable) or all(place.fenced for place in usable.values()):
            raise Refused("INVALID_REPLICATION_FACTOR")
        broken = breaks(usable, factor, found)
        assert not broken, broken

    def delete(self, name: str) -> None:
        if self.topics.pop(name, None) is None:
            raise Refused("UNKNOWN_TOPIC_OR_PARTITION")

    def _new(self, replicas: Ids) -> Replicas:
        if any(broker not in self.nodes or self.nodes[broker].closed for broker in replicas):
            raise Refused("INVALID_REPLICA_ASSIGNMENT")
        isr = tuple(broker for broker in replicas if self.nodes[broker].active)
        if not isr:
            raise Refused("INVALID_REPLICA_ASSIGNMENT")
        return Replicas(
            replicas, isr, isr[0], directories=tuple(map(self._first_directory, replicas))
        )

    def _first_directory(self, broker: int) -> str:
        """Return where a new replica lies: in its broker's only directory, or nowhere yet."""
        known = self.nodes[broker].directories
        return known[0] if len(known) == 1 else UNASSIGNED

    # -- configs and levels (section 9) ------------------------------------------------------

    def set_min_isr(self, name: str, value: int | None) -> None:
        """A new value empties the ELRs, but for partitions that have nobody else."""
        topic = self.topics[name]
        if topic.min_isr == value:
            return
        topic.min_isr = value
        if self.elr:
            topic.partitions[:] = [emptied(each) if each.isr else each for each in topic.partitions]

    def set_unclean(self, name: str, value: bool) -> None:
        """A new value starts a search for leaders (ADR 0029). Who has none may get one now."""
        if self.topics[name].unclean != value:
            self.topics[name].unclean = value
            self.elect_where_possible()

    def switch_elr(self, on: bool) -> None:
        if self.elr and not on:
            everything = [each for topic in self.topics.values() for each in topic.partitions]
            if any(not each.isr for each in everything):
                raise Refused("FEATURE_UPDATE_FAILED")
            for topic in self.topics.values():
                topic.partitions[:] = [emptied(each) for each in topic.partitions]
        self.elr = on

    # -- events of brokers (section 5) -------------------------------------------------------

    def fence(self, broker: int) -> None:
        self._leave(broker, lambda each: broker in each.isr)
        self.nodes[broker].fenced = True

    def unfence(self, broker: int) -> None:
        self.nodes[broker].fenced = False
        self.elect_where_possible(broker)

    def stop(self, broker: int) -> None:
        """It begins to stop, and goes when the others have applied that."""
        node = self.nodes[broker]
        node.stopping = any(
            each.leader == broker for topic in self.topics.values() for each in topic.partitions
        )
        self.fence(broker)

    def assign(self, broker: int, place: tuple[str, int], directory: str) -> None:
        """A broker says in which of its directories a replica lies."""
        now = self.partition(*place)
        if broker not in now.replicas:
            raise Refused("NOT_LEADER_OR_FOLLOWER")
        self._settle(*place, moved={broker: directory})

    def fail(self, broker: int, directory: str) -> None:
        """A directory fails. Its replicas lose leadership; without any the broker is fenced."""
        node = self.nodes[broker]
        left = tuple(each for each in node.directories if each != directory)
        if not left:
            if node.active:
                self.fence(broker)
            return
        if left == node.directories:
            return
        node.directories = left
        self._leave(
            broker,
            lambda each: (
                broker in each.isr and each.directories[each.replicas.index(broker)] == directory
            ),
        )

    def cordon(self, broker: int, directories: tuple[str, ...]) -> None:
        """A broker says which of its directories take no new replicas. The others do again."""
        self.nodes[broker].cordoned = directories

    def register(self, broker: int, node: Node, *, clean: bool) -> None:
        """A new process. Unclean with ELR on: it is in no ISR and no ELR any more."""
        if self.elr and not clean and broker in self.nodes:
            self._leave(broker, lambda each: broker in each.isr + each.elr, unclean=(broker,))
        self.nodes[broker] = node

    def unregister(self, broker: int) -> None:
        if broker not in self.nodes:
            raise Refused("BROKER_ID_NOT_REGISTERED")
        self._leave(broker, lambda each: broker in each.isr + each.elr, unclean=(broker,))
        del self.nodes[broker]

    def elect_where_possible(self, back: int | None = None) -> None:
        """Look at who has no leader and a broker that is there; `back`: only at this broker's."""
        for name, topic in self.topics.items():
            for number, each in enumerate(topic.partitions):
                if self._stranded(each) and (back is None or back in each.replicas):
                    self._settle(name, number)

    def balance(self) -> int:
        """Give leadership back to first replicas, in preferred mode. Returns how many changed."""
        return self._each(lambda _topic, each: each.leader != each.replicas[0], mode="preferred")

    def scan(self) -> int:
        """Elect leaders where none is and the topic allows an unclean one. Returns how many."""
        return self._each(lambda _topic, each: self._stranded(each), mode=None)

    def _stranded(self, each: Replicas) -> bool:
        """Whether nobody leads, and a broker that is there has a replica."""
        return each.leader == NOBODY and any(
            broker in self.nodes and self.nodes[broker].active for broker in each.replicas
        )

    def _each(self, concerned: Callable[[Topic, Replicas], bool], mode: str | None) -> int:
        changed = 0
        for name, topic in self.topics.items():
            for number, each in enumerate(topic.partitions):
                if concerned(topic, each):
                    self._settle(name, number, mode=mode)
                    changed += topic.partitions[number] != each
        return changed

    def _leave(self, broker: int, concerned: Callable[[Replicas], bool], unclean: Ids = ()) -> None:
        lives = {number for number, node in self.nodes.items() if node.active} - {broker}
        for name, topic in self.topics.items():
            for number, each in enumerate(topic.partitions):
                if concerned(each):
                    isr = tuple(member for member in each.isr if member != broker)
                    self._settle(name, number, isr=isr, lives=lives, unclean=unclean)

    # -- requests about a partition ----------------------------------------------------------

    def partition(self, name: str, number: int) -> Replicas:
        if name not in self.topics or not 0 <= number < len(self.topics[name].partitions):
            raise Refused("UNKNOWN_TOPIC_OR_PARTITION")
        return self.topics[name].partitions[number]

    def alter(
        self,
        caller: int,
        caller_epoch: int,
        place: tuple[str, int],
        leader_epoch: int,
        epoch: int,
        isr: Ids,
        member_epochs: dict[int, int],
        *,
        recovering: bool,
    ) -> Replicas:
        """A leader asks for an ISR (section 6). Returns the partition as the answer has it."""
        if caller not in self.nodes or self.nodes[caller].epoch != caller_epoch:
            raise Refused("STALE_BROKER_EPOCH")
        now = self.partition(*place)
        if leader_epoch > now.leader_epoch or epoch > now.epoch:
            raise Refused("NOT_CONTROLLER")
        if leader_epoch < now.leader_epoch:
            raise Refused("FENCED_LEADER_EPOCH")
        if caller != now.leader:
            raise Refused("INVALID_REQUEST")
        if epoch < now.epoch:
            raise Refused("INVALID_UPDATE_VERSION")
        if not isr or len(set(isr)) < len(isr) or not set(isr) <= set(now.replicas):
            raise Refused("INVALID_REQUEST")
        if now.leader not in isr or (recovering and (len(isr) > 1 or not now.recovering)):
            raise Refused("INVALID_REQUEST")
        for member in isr:
            node = self.nodes.get(member)
            if node is None or not node.active:
                raise Refused("INELIGIBLE_REPLICA")
            if member_epochs.get(member, -1) not in (-1, node.epoch):
                raise Refused("INELIGIBLE_REPLICA")
            if not self._works(member, now.directories[now.replicas.index(member)]):
                raise Refused("INELIGIBLE_REPLICA")
        self._settle(*place, isr=isr, recovering=recovering)
        after = self.partition(*place)
        if after.leader != now.leader:
            raise Refused("NEW_LEADER_ELECTED")
        return after

    def elect(self, place: tuple[str, int], *, preferred: bool) -> int:
        """ElectLeaders (section 8). Returns the leader."""
        now = self.partition(*place)
        if now.leader == now.replicas[0] if preferred else now.leader != NOBODY:
            raise Refused("ELECTION_NOT_NEEDED")
        self._settle(*place, mode="preferred" if preferred else "unclean")
        after = self.partition(*place)
        if after == now:
            missing = "PREFERRED_LEADER" if preferred else "ELIGIBLE_LEADERS"
            raise Refused(f"{missing}_NOT_AVAILABLE")
        return after.leader

    def reassign(self, place: tuple[str, int], target: Ids) -> None:
        """Start a reassignment, perhaps over a running one (section 7, ADR 0030)."""
        now = self.partition(*place)
        if not target or len(set(target)) < len(target) or not set(target) <= set(self.nodes):
            raise Refused("INVALID_REPLICA_ASSIGNMENT")
        if any(self.nodes[broker].closed for broker in set(target) - set(now.replicas)):
            raise Refused("INVALID_REPLICA_ASSIGNMENT")
        removing = tuple(sorted(set(now.replicas) - set(target)))
        adding = tuple(sorted(set(target) - set(now.replicas)))
        adding = adding or tuple(broker for broker in now.adding if broker not in removing)
        self._settle(
            *place,
            replicas=target + removing,
            removing=removing or now.removing,
            adding=adding,
            mode="clean",
        )

    def cancel(self, place: tuple[str, int]) -> None:
        now = self.partition(*place)
        if not now.adding and not now.removing:
            raise Refused("NO_REASSIGNMENT_IN_PROGRESS")
        replicas = tuple(broker for broker in now.replicas if broker not in now.adding)
        isr = tuple(broker for broker in now.isr if broker not in now.adding)
        if not replicas or (not isr and not self.topics[place[0]].unclean):
            raise Refused("INVALID_REPLICA_ASSIGNMENT")
        self._settle(*place, isr=isr or replicas[:1], replicas=replicas, removing=(), adding=())

    def _works(self, broker: int, directory: str) -> bool:
        return directory in (UNASSIGNED, *self.nodes[broker].directories)

    # -- what every change goes through (sections 4, 7 and 9) --------------------------------

    def _settle(
        self,
        name: str,
        number: int,
        *,
        isr: Ids | None = None,
        replicas: Ids | None = None,
        removing: Ids | None = None,
        adding: Ids | None = None,
        recovering: bool | None = None,
        lives: Iterable[int] | None = None,
        unclean: Ids = (),
        mode: str = "",
        moved: dict[int, str] | None = None,
    ) -> None:
        topic = self.topics[name]
        now = topic.partitions[number]
        if lives is None:
            lives = {broker for broker, node in self.nodes.items() if node.active}
        known = {**dict(zip(now.replicas, now.directories, strict=True)), **(moved or {})}
        lives = {b for b in lives if self._works(b, known.get(b, UNASSIGNED))}
        want = replace(
            now,
            isr=now.isr if isr is None else isr,
            replicas=now.replicas if replicas is None else replicas,
            removing=now.removing if removing is None else removing,
            adding=now.adding if adding is None else adding,
        )
        want = completed(want)
        least = min(self.min_isr if topic.min_isr is None else topic.min_isr, len(now.replicas))
        if not self.elr:
            want = replace(want, elr=())
        elif len(want.isr) >= least:
            want = replace(want, elr=(), last_known=())
        else:
            eligible = {*now.elr, *now.isr}.intersection(want.replicas)
            eligible -= {*want.isr, *unclean}
            want = replace(want, elr=tuple(sorted(eligible)))
        mode = mode or ("unclean" if topic.unclean else "clean")
        want = elected(want, set(lives), mode, elr_on=self.elr, least=least)
        if not want.isr and not self.elr:
            want = replace(want, isr=now.isr)
        lost = set(now.replicas) - set(want.replicas)
        named = want.leader != now.leader or bool(lost)
        if self.elr and named:
            if want.leader != NOBODY:
                want = replace(want, last_known=())
            elif not want.last_known and now.leader != NOBODY:
                want = replace(want, last_known=(now.leader,))
        if recovering is not None:
            want = replace(want, recovering=recovering)
        found = tuple(known.get(b) or self._first_directory(b) for b in want.replicas)
        want = replace(want, directories=found)
        if replace(want, elr=()) == replace(now, elr=()) and set(want.elr) == set(now.elr):
            return
        topic.partitions[number] = replace(
            want, leader_epoch=now.leader_epoch + named, epoch=now.epoch + 1
        )
