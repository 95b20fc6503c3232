"""The plan that empties brokers chooses as if it compared all brokers for each replica."""

from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controller.managers.moves import EmptyingPlan
from metadata.errors import LogbergError
from metadata.image import EMPTY, MetadataDelta, MetadataImage
from metadata.records import PartitionRecord, Record, RegisterBrokerRecord, TopicRecord

TOPIC = b"t" * 16


def drawn(dice: Random) -> MetadataImage:
    """Some brokers on racks, of which some take no replicas, and partitions on them."""
    count = dice.randint(2, 12)
    records: list[Record] = [TopicRecord("t", TOPIC)]
    for broker_id in range(count):
        disk = (bytes([broker_id + 1]) * 16,)
        rack, cordoned = dice.choice((None, "", "a", "b")), dice.choice((None, None, None, disk))
        fenced, stopping = dice.random() < 0.15, dice.random() < 0.1
        record = RegisterBrokerRecord(
            broker_id, bytes(16), 1, (), (), rack, fenced, stopping, disk, False, cordoned
        )
        records.append(record)
    for number in range(dice.randint(1, 30)):
        on = tuple(dice.sample(range(count), dice.randint(1, min(count, 4))))
        records.append(PartitionRecord(number, TOPIC, on, on, (), (), on[0], 0, 0))
    delta = MetadataDelta(EMPTY)
    delta.replay_all(records, 0)
    delta.finish_batch(len(records), 1, 0)
    return delta.apply()


class PlainPlan:
    """The same choice by a look at all brokers."""

    def __init__(self, image: MetadataImage, emptied: Sequence[int]) -> None:
        self.emptied = emptied
        self.held = {b: image.topics.replicas_on(b) for b in image.cluster.ids}
        self.racks = {
            broker.broker_id: broker.rack
            for broker in image.cluster.brokers.values()
            if broker.active and not broker.cordoned_log_dirs and broker.broker_id not in emptied
        }

    def moved(self, replicas: Sequence[int]) -> tuple[int, ...]:
        after = list(replicas)
        for place, broker_id in enumerate(replicas):
            free = [b for b in self.racks if b not in after]
            if broker_id in self.emptied and free:
                taken = {self.racks.get(b) for b in after if b not in self.emptied}
                after[place] = min(free, key=lambda b: (self.racks[b] in taken, self.held[b], b))
                self.held[after[place]] += 1
        return tuple(after)


@given(st.integers(0, 2**32))
def test_the_plan_is_that_of_a_look_at_all_brokers(seed: int) -> None:
    dice = Random(seed)
    image: Any = drawn(dice)
    emptied = dice.sample(list(image.cluster.ids), dice.randint(1, 2))
    plain = PlainPlan(image, emptied)
    try:
        plan = EmptyingPlan(image, emptied)
    except LogbergError:
        assert not plain.racks
        return
    for key in sorted(filter(None, plan.keys())):
        move = plan.move(key)
        assert move.replicas == plain.moved(move.before)
