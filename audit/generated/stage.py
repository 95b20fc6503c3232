"""Where the made-up cluster's life takes place: its controllers, its clock, and who asks for what.

Rule: everything that happens is due at a time, and at equal times in the order in which it was
planned. What takes its time is a *story*: a generator that yields how long it waits, or stories
that are played together before it goes on. People and brokers ask the rehearsed controllers
(`controller.rehearsal`), and these decide as real ones do. So nothing here makes a record, and what
is refused is not in the log.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final

from audit.generated.cast import BrokerProcess, Cast
from audit.generated.chronicle import Chronicle
from audit.generated.dice import Dice
from audit.generated.people import Actor
from audit.generated.rhythm import moment
from controller.config import ControllerConfig
from controller.rehearsal.brokers import RehearsedBrokers
from controller.rehearsal.rehearsal import TAKEN_TOGETHER, Answered, Rehearsal, SealedBatch
from controller.rehearsal.stepped_clock import SteppedClock
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.sealing import ClusterKey
from quorum.api import Voter
from runtime.randomness import Random, seeded

Then = Callable[[], None]
"""What goes on when something is over."""
Story = Iterator["int | Sequence[Story]"]
"""Yields ms to wait, or stories to wait for."""
CONTROLLERS: Final = (1, 2, 3)
FIRST_LEVELS: Final = {
    "eligible.leader.replicas.version": 0,
    "logberg.version": 4,
    "metadata.version": 25,
}
BROKERS_MOST: Final = 1_000


class Stage:
    """The clock, the controllers, the dice, the cast, and what is known of the past."""

    def __init__(self, seed: int, cluster_id: str, start_ms: int, records: int, cast: Cast) -> None:
        """`records`: how many there will be, about."""
        self.cast = cast
        self.dice = Dice(seed, "history")
        self.cluster_id = cluster_id
        voters = [
            Voter(number, self.dice.uuid(), f"controller-{number}.example.net", 9091)
            for number in CONTROLLERS
        ]
        config = ControllerConfig(
            cluster_id=cluster_id,
            node_id=CONTROLLERS[0],
            controller_urls={
                number: f"https://controller-{number}.example.net:9191" for number in CONTROLLERS
            },
            initial_features=FIRST_LEVELS,
            delegations={number: frozenset({"User:*"}) for number in range(1, BROKERS_MOST)},
            cluster_key=made_up_key(cluster_id),
            partition_mutations_per_s=0,
            topic_deletion=True,
        )
        self._clock = SteppedClock(start_ms)

        def dice_of(node: int, life: int) -> Random:
            return seeded(seed, "controller", node, life)

        self.rehearsal = Rehearsal(config, self._clock, voters, dice_of)
        self.rehearsed_brokers = RehearsedBrokers(self.rehearsal)
        self.chronicle = Chronicle()
        self.sealed: list[SealedBatch] = []
        self._together = min(TAKEN_TOGETHER, 1 + records // 100)

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms

    @property
    def image(self) -> MetadataImage:
        """What the cluster is now. It must not be kept."""
        return self.rehearsal.image

    @property
    def offset(self) -> int:
        """Where the next record will stand."""
        return self.rehearsal.mark.log_end

    @property
    def leader(self) -> int:
        """Which controller leads."""
        return self.rehearsal.leader_id

    @property
    def active(self) -> list[BrokerProcess]:
        """The brokers that serve."""
        return self.cast.active(self.image)

    @property
    def free(self) -> list[BrokerProcess]:
        """The brokers that serve, and that no episode has."""
        return self.cast.free(self.image)

    # What comes next.

    def after(self, delay_ms: int, happens: Callable[[], None]) -> None:
        """Plan something."""
        self._clock.call_in(delay_ms, happens)

    def play(self, story: Story | None, then: Then | None = None) -> None:
        """Let a story go on until it is over (None: it is); `then` follows."""
        step = None if story is None else next(story, None)
        if step is None:
            if then is not None:
                then()
            return
        rest = partial(self.play, story, then)
        if isinstance(step, int):
            self.after(step, rest)
            return
        left = len(step)

        def over() -> None:
            nonlocal left
            left -= 1
            if not left:
                rest()

        for each in step:
            self.play(each, over)

    def next_ms(self) -> int | None:
        """When the next planned thing is due."""
        return self._clock.next_ms()

    def go_on(self) -> None:
        """Let the next planned thing happen."""
        self.rehearsal.go_on()
        self.collect()

    def wait(self, delay_ms: int) -> None:
        """Let time pass; what is due meanwhile happens."""
        over: list[bool] = []
        self.after(delay_ms, lambda: over.append(True))
        while not over:
            self.rehearsal.go_on()
        self.collect()

    # What is asked for.

    def ask(
        self, actor: Actor, route: str, message: Any = None, reason: str = "", **arguments: str
    ) -> Answered:
        """Let somebody ask for a change. Raises LogbergError if it is refused."""
        answered = self.rehearsal.ask(
            actor.caller, route, message, arguments=arguments, headers=actor.headers(reason)
        )
        self.collect()
        return answered

    def may_ask(
        self, actor: Actor, route: str, message: Any = None, reason: str = "", **arguments: str
    ) -> Answered | None:
        """Let somebody ask for what may be refused; None: it was."""
        try:
            return self.ask(actor, route, message, reason, **arguments)
        except LogbergError:
            return None

    def collect(self, *, all_of_it: bool = False) -> None:
        """Take what the controllers have written."""
        for sealed in self.rehearsal.take(0 if all_of_it else self._together):
            self.chronicle.see(sealed)
            self.sealed.append(sealed)

    # What is told of it.

    def tell(
        self, kind: str, subject: str, answered: Answered, principal: str, sentence: str = ""
    ) -> None:
        """Note a fact that began and ended with one request."""
        self.chronicle.tell(
            kind,
            subject,
            (answered.base_offset, answered.time_ms),
            (answered.end_offset, answered.time_ms),
            principal,
            sentence,
        )

    def tell_since(
        self,
        kind: str,
        subject: str,
        begun: tuple[int, int],
        principal: str,
        sentence: str = "",
    ) -> None:
        """Note a fact that began at an offset and a time, and ends now."""
        mark = self.rehearsal.mark
        self.chronicle.tell(
            kind, subject, begun, (mark.log_end, mark.timestamp_ms), principal, sentence
        )

    def teller(self, kind: str, subject: str, principal: str, sentence: str) -> Then:
        """Return what tells of an episode that begins now, once it is over."""
        begun = self.offset, self.now_ms
        said = f"{moment(self.now_ms)}: {sentence}"
        return lambda: self.tell_since(kind, subject, begun, principal, said)


def made_up_key(cluster_id: str) -> ClusterKey:
    """Return the key under which a made-up cluster seals its secrets. It is no secret."""
    return ClusterKey(sha256(b"made up: " + cluster_id.encode()).digest())
