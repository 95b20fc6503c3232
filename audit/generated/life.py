"""A cluster's life from its first leader to the end of the log: what happens when.

Rule: episodes come in a fixed order, each at its share of the history, so that a short history has
them all; between them people and services go about their business, more by day than by night, at
a pace that spends the wanted records over the wanted days.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from audit.generated.brokers import Brokers
from audit.generated.cast import BrokerProcess, Cast
from audit.generated.controllers import Controllers
from audit.generated.coordinating import Coordinating
from audit.generated.facts import Fact
from audit.generated.failures import Failures
from audit.generated.intrusion import intrusion
from audit.generated.large_operations import LargeOperations
from audit.generated.people import ALICE
from audit.generated.replicas import Replicas
from audit.generated.rhythm import (
    DAY_MS,
    HOUR_MS,
    SECOND_MS,
    START_MS,
    busy_percent,
    by_day,
    moment,
)
from audit.generated.security import Security
from audit.generated.stage import BROKERS_MOST, Stage, Then
from audit.generated.topics import FIRST_TOPICS_MS, RECORDS_PER_TOPIC, Topics
from audit.generated.works import Works
from controller.rehearsal.rehearsal import SealedBatch
from ledger.chain import LogMark
from metadata.image import MetadataImage
from metadata.messages import WantedState

CLUSTER_ID: Final = "R2VuZXJhdGVkSGlzdG9yeQ"
RECORDS_PER_DAY: Final = 3_300
"""Of a cluster of a usual size."""
DAYS_LEAST, DAYS_MOST = 7, 90
"""How long a history is of which only the records are given."""
_RACKS: Final = 3
_MANY_DEPLOYMENTS: Final = 20_000
"""Records of a history that has more than one."""
_PRIOR: Final = 200, 2_400
"""Operations, and the records that they have: what is believed of the pace before it is known."""


class _Planned(NamedTuple):
    """An episode to come."""

    share: float
    """How much of the history is over when it begins."""
    by_day: bool
    """People begin it, so it waits for the morning."""
    episode: Callable[[Then], None]


class Life:
    """Lives once: iterate over `sealed`, then ask for facts."""

    def __init__(
        self,
        seed: int,
        *,
        days: float | None = None,
        records: int | None = None,
        cluster_id: str = CLUSTER_ID,
        brokers: int | None = None,
        topics: int | None = None,
        open_transaction: bool = False,
    ) -> None:
        """At least one of `days` and `records`; the log ends with the operation that has them.

        Raises ValueError for numbers that make no history.
        """
        self._records, self._span_ms = _extent(days, records)
        self._until_offset = records
        brokers = brokers or (12 if self._records < 1_000_000 else 24)
        if not _RACKS <= brokers < BROKERS_MOST:
            raise ValueError(
                f"a history needs {_RACKS} to {BROKERS_MOST - 1} brokers, not {brokers}"
            )
        if topics is not None and self._records < topics * RECORDS_PER_TOPIC:
            raise ValueError(
                f"a history of {topics} topics has at least {topics * RECORDS_PER_TOPIC} records, "
                f"not {self._records}: name more records or days, or fewer topics"
            )
        self._start_ms = START_MS
        self._stage = stage = Stage(seed, cluster_id, START_MS, self._records)
        self._cast = cast = Cast()
        self._security = Security(stage, cast)
        self._brokers = Brokers(stage, cast)
        partitions = partitions_for(self._records)
        self._topics = Topics(stage, cast, partitions, topics)
        self._replicas = Replicas(stage, cast, self._brokers, self._topics, partitions)
        self._controllers = Controllers(stage)
        self._coordinating = Coordinating(stage)
        self._works = Works(
            stage, cast, self._brokers, self._replicas, self._controllers, self._coordinating
        )
        self._failures = Failures(stage, cast, self._brokers, self._topics, self._replicas)
        self._large_operations = LargeOperations(
            stage, cast, self._topics, self._replicas, self._controllers
        )
        self._broker_count = brokers
        self._open_transaction = open_transaction
        self._image = MetadataImage()
        self._busy = False
        self._operations = 0
        self._script = self._plan()
        self._business = self._weigh()

    @property
    def expected_records(self) -> int:
        """How many records it will have, about."""
        return self._records

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What happened so far; all of it, in order, when `sealed` is exhausted."""
        return tuple(self._stage.chronicle.facts)

    @property
    def mark(self) -> LogMark:
        """Where the log ends."""
        return self._stage.rehearsal.mark

    @property
    def image(self) -> MetadataImage:
        """The state behind the last batch that was made together with the one yielded last."""
        return self._image

    @property
    def size(self) -> tuple[int, int, int]:
        """Brokers, topics and partitions that there are."""
        image = self._stage.rehearsal.settled()
        topics = image.topics
        return len(image.cluster.brokers), len(topics.by_id), len(topics.partitions)

    def sealed(self) -> Iterator[SealedBatch]:
        """Yield the batches of the whole history, each with its records."""
        stage = self._stage
        self._begin()
        yield from self._taken()
        next_ms = stage.now_ms + FIRST_TOPICS_MS
        while not self._over:
            due_ms = stage.next_ms()
            if due_ms is not None and due_ms <= next_ms:
                stage.go_on()
            else:
                stage.wait(max(0, next_ms - stage.now_ms))
                self._go_about()
                next_ms = stage.now_ms + self._pause_ms()
            yield from self._taken()
        if self._open_transaction:
            self._large_operations.open_change()
        stage.collect(all_of_it=True)
        stage.chronicle.finish()
        yield from self._taken()

    def _taken(self) -> Iterator[SealedBatch]:
        stage = self._stage
        stage.collect()
        if stage.sealed:
            self._image = stage.rehearsal.committed
            sealed, stage.sealed = stage.sealed, []
            yield from sealed

    @property
    def _progress(self) -> float:
        if self._until_offset is not None:
            return self._stage.offset / self._until_offset
        return (self._stage.now_ms - self._start_ms) / self._span_ms

    @property
    def _over(self) -> bool:
        return self._progress >= 1.0

    def _pause_ms(self) -> int:
        """How long until the next piece of business: less when behind, by day, in the week."""
        now_ms, offset = self._stage.now_ms, self._stage.offset
        due = self._records * (now_ms - self._start_ms) / self._span_ms
        ahead = (offset + 200) / (due + 200)
        each = (offset + _PRIOR[1]) / (self._operations + _PRIOR[0])
        mean_ms = self._span_ms * each / self._records
        mean_ms *= min(max(ahead * ahead, 0.1), 8.0)
        return self._stage.dice.around(mean_ms * 100 / busy_percent(now_ms))

    # The beginning.

    def _begin(self) -> None:
        """The first leader, controllers, brokers, services; then topics come."""
        stage, cast = self._stage, self._cast
        self._controllers.begin()
        self._security.default_min_isr()
        for number in range(1, self._broker_count + 1):
            stage.wait(400)
            dirs = tuple(stage.dice.uuid() for _ in range(2 if number % 4 == 0 else 1))
            broker = BrokerProcess(number, (number - 1) % _RACKS, dirs)
            cast.brokers[number] = broker
            self._brokers.register(broker)
        for broker in cast.brokers.values():
            stage.wait(3 * SECOND_MS)
            self._brokers.wants(broker, WantedState.ONLINE)
        self._security.rotate_all()
        self._coordinating.begin()
        self._topics.populate()
        self._recur(DAY_MS // 2, 2 * DAY_MS, self._brokers.hiccup)
        self._recur(DAY_MS, 2 * DAY_MS, self._works.restart_one)
        self._recur(2 * DAY_MS, 4 * DAY_MS, self._controllers.failover)

    def _recur(self, least_ms: int, most_ms: int, happens: Callable[[], object]) -> None:
        """Let something happen again and again, unless an episode is under way."""

        def again() -> None:
            if not self._busy:
                happens()
            self._recur(least_ms, most_ms, happens)

        self._stage.after(self._stage.dice.between(least_ms, most_ms), again)

    # Episodes.

    def _plan(self) -> list[_Planned]:
        """What is to come and when; the last comes first."""
        works, failures, large = self._works, self._failures, self._large_operations
        script = [
            _Planned(0.12, True, works.deployment),
            _Planned(0.20, True, large.big_change),
            _Planned(0.24, False, failures.broker_dies),
            _Planned(0.31, True, large.aborted_change),
            _Planned(0.34, False, failures.broker_flaps),
            _Planned(0.40, True, self._upgrade),
            _Planned(0.86, True, self._keep_elr),
            _Planned(0.45, False, failures.rack_outage),
            _Planned(0.52, False, failures.isr_storm),
            _Planned(0.58, False, failures.unclean_election),
            _Planned(0.64, True, large.discarded_change),
            _Planned(0.68, False, self._intrusion),
            _Planned(0.72, True, works.replace_broker),
            _Planned(0.80, True, self._rotation),
            _Planned(0.84, False, failures.broker_flaps),
        ]
        if self._records >= _MANY_DEPLOYMENTS:
            script += [_Planned(share, True, works.deployment) for share in (0.37, 0.62, 0.88)]
        return sorted(script, key=lambda planned: planned.share, reverse=True)

    def _upgrade(self, then: Then) -> None:
        self._raise_level("metadata.version", 26, "all brokers run the new release", then)

    def _keep_elr(self, then: Then) -> None:
        why = "partitions remember who is safe to elect"
        self._raise_level("eligible.leader.replicas.version", 1, why, then)

    def _raise_level(self, name: str, level: int, why: str, then: Then) -> None:
        """Raise a level; later again, if a broker or controller is not ready for it."""
        stage = self._stage
        before, begun = stage.image.features.levels.get(name, 0), (stage.offset, stage.now_ms)
        if not self._security.feature(name, level, ALICE, why):
            stage.after(HOUR_MS, lambda: self._raise_level(name, level, why, then))
            return
        said = f"{moment(stage.now_ms)}: alice raised {name} from {before} to {level}."
        stage.tell_since("upgrade", f"feature:{name}", begun, ALICE.principal, said)
        then()

    def _rotation(self, then: Then) -> None:
        self._security.rotate_all()
        then()

    def _intrusion(self, then: Then) -> None:
        intrusion(self._stage, self._security, then)

    # Between episodes.

    def _weigh(self) -> list[Callable[[], None]]:
        topics, replicas, security = self._topics, self._replicas, self._security
        weights: tuple[tuple[int, Callable[[], None]], ...] = (
            (48, replicas.wobble),
            (5, topics.create),
            (2, topics.delete),
            (1, topics.grow),
            (9, topics.configure),
            (5, replicas.reassign),
            (3, replicas.assign_directories),
            (4, security.grant),
            (2, security.revoke),
            (2, security.set_password),
            (1, security.remove_password),
            (3, security.token),
            (3, security.quota),
            (3, security.configure_broker),
            (5, security.producer_ids),
            (4, self._coordinating.change),
        )
        return [happens for weight, happens in weights for _ in range(weight)]

    def _go_about(self) -> None:
        """Begin the next episode if it is time, else let somebody do something."""
        stage = self._stage
        if not self._cast.topics:
            return
        if self._script and not self._busy:
            coming = self._script[-1]
            if self._progress >= coming.share and (not coming.by_day or by_day(stage.now_ms)):
                self._script.pop()
                self._busy = True
                coming.episode(self._done)
                return
        self._operations += 1
        stage.dice.pick(self._business)()

    def _done(self) -> None:
        self._busy = False


def _extent(days: float | None, records: int | None) -> tuple[int, int]:
    """Return how many records over how many ms."""
    if days is None and records is None:
        raise ValueError("give days, or records, or both")
    if (records is not None and records < 1) or (days is not None and days <= 0):
        raise ValueError("a history has at least one record, and lasts longer than nothing")
    if days is None:
        assert records is not None
        days = min(max(records // RECORDS_PER_DAY, DAYS_LEAST), DAYS_MOST)
    if records is None:
        records = max(1, int(days * RECORDS_PER_DAY))
    return records, max(1, int(days * DAY_MS))


def partitions_for(records: int) -> int:
    """Return how many partitions a cluster with such a history has, about."""
    return max(24, records // 150)
