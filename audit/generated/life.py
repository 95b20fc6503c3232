"""A cluster's life from its first leader to the end of the log: what happens when.

Rule: episodes come in a fixed order, each at its share of the history, so that a short history has
them all; between them people and services go about their business, more by day than by night, at
a pace that spends the wanted records over the wanted days.
"""

from collections.abc import Iterator
from typing import Final

from audit.generated import brokers, coordinating, security, topics
from audit.generated.cast import BrokerProcess, Cast
from audit.generated.facts import Fact
from audit.generated.large_operations import open_change
from audit.generated.rhythm import DAY_MS, SECOND_MS, START_MS, busy_percent, by_day
from audit.generated.stage import BROKERS_MOST, CONTROLLERS, Stage, Story
from audit.generated.story import BUSINESS, EPISODES, RECURRING, Happening
from audit.generated.topics import FIRST_TOPICS_MS, RECORDS_PER_TOPIC
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
_PRIOR: Final = 200, 2_400
"""Operations, and the records that they have: what is believed of the pace before it is known."""


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
        self._records, self._span_ms = _extent(days, records, topics or 0)
        self._until_offset = records
        brokers = brokers or (12 if self._records < 1_000_000 else 24)
        if not _RACKS <= brokers < BROKERS_MOST:
            raise ValueError(
                f"a history needs {_RACKS} to {BROKERS_MOST - 1} brokers, not {brokers}"
            )
        if topics is not None and self._records < topics * RECORDS_PER_TOPIC:
            raise ValueError(
                f"a history of {topics} topics has at least {topics * RECORDS_PER_TOPIC} records, "
                f"not {self._records}: name more records, or fewer topics"
            )
        self._start_ms = START_MS
        cast = Cast(partitions_for(self._records), topics)
        self._stage = Stage(seed, cluster_id, START_MS, self._records, cast)
        self._broker_count = brokers
        self._open_transaction = open_transaction
        self._image = MetadataImage()
        self._busy = False
        self._operations = 0
        played = [each for each in EPISODES if self._records >= each.records_least]
        self._script = played[::-1]

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
            open_change(stage)
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
        stage, cast = self._stage, self._stage.cast
        stage.rehearsal.elect(CONTROLLERS[0], 1)
        stage.collect()
        security.default_min_isr(stage)
        for number in range(1, self._broker_count + 1):
            stage.wait(400)
            dirs = tuple(stage.dice.uuid() for _ in range(2 if number % 4 == 0 else 1))
            cast.brokers[number] = broker = BrokerProcess(number, (number - 1) % _RACKS, dirs)
            brokers.register(stage, broker)
        for broker in cast.brokers.values():
            stage.wait(3 * SECOND_MS)
            brokers.wants(stage, broker, WantedState.ONLINE)
        security.rotate_all(stage)
        coordinating.begin(stage)
        topics.populate(stage)
        for recurring in RECURRING:
            stage.play(self._recur(*recurring))

    # What happens.

    def _recur(self, least_ms: int, most_ms: int, happens: Happening) -> Story:
        """Let something happen again and again, unless an episode is under way."""
        dice = self._stage.dice
        yield dice.between(least_ms, most_ms)
        while True:
            if not self._busy:
                self._stage.play(happens(self._stage))
            yield dice.between(least_ms, most_ms)

    def _go_about(self) -> None:
        """Begin the next episode if it is time, else let somebody do something."""
        stage = self._stage
        if not stage.cast.topics:
            return
        if self._script and not self._busy:
            coming = self._script[-1]
            if self._progress >= coming.share and (not coming.by_day or by_day(stage.now_ms)):
                self._script.pop()
                self._busy = True
                stage.play(coming.happens(stage), self._done)
                return
        self._operations += 1
        stage.dice.pick(BUSINESS)(stage)

    def _done(self) -> None:
        self._busy = False


def _extent(days: float | None, records: int | None, topics: int) -> tuple[int, int]:
    """Return how many records over how many ms; enough for `topics`, if their number is open."""
    if days is None and records is None:
        raise ValueError("give days, or records, or both")
    if (records is not None and records < 1) or (days is not None and days <= 0):
        raise ValueError("a history has at least one record, and lasts longer than nothing")
    if days is None:
        assert records is not None
        days = min(max(records // RECORDS_PER_DAY, DAYS_LEAST), DAYS_MOST)
    if records is None:
        records = max(1, int(days * RECORDS_PER_DAY), topics * RECORDS_PER_TOPIC)
    return records, max(1, int(days * DAY_MS))


def partitions_for(records: int) -> int:
    """Return how many partitions a cluster with such a history has, about."""
    return max(24, records // 150)
