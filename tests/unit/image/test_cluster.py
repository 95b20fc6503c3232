"""Brokers and controllers: what each record about them does to the image."""

from typing import Any

import pytest

from metadata.image import EMPTY, MetadataDelta, MetadataImage, ReplayError
from metadata.image.cluster import broker_record
from metadata.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from tests.unit.image.replaying import registration, replayed


def change(**fields: Any) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(1, 10, **fields)


def test_a_registration_is_born_fenced() -> None:
    """Default of the record: a broker is fenced until it has caught up."""
    broker = replayed(registration()).cluster.brokers[1]
    assert broker.fenced
    assert not broker.in_controlled_shutdown
    assert not broker.active
    assert broker.controlled_shutdown_offset == -1


@pytest.mark.parametrize(("code", "fenced"), [(1, True), (-1, False), (0, True)])
def test_a_change_fences_unfences_or_leaves_alone(code: int, fenced: bool) -> None:
    """1 fences, -1 unfences, 0 is untouched."""
    image = replayed(registration(), change(fenced=code))
    assert image.cluster.brokers[1].fenced is fenced


def test_an_unfenced_broker_stays_so_when_untouched() -> None:
    """0 doesn't fence either."""
    image = replayed(registration(fenced=False), change(fenced=0))
    assert image.cluster.brokers[1].fenced is False
    assert image.cluster.brokers[1].active


def test_the_old_fence_records_do_the_same() -> None:
    """Types 7 and 8 stand in logs of Kafka before 3.3."""
    unfenced = replayed(registration(), UnfenceBrokerRecord(1, 10))
    assert not unfenced.cluster.brokers[1].fenced
    assert replayed(FenceBrokerRecord(1, 10), image=unfenced).cluster.brokers[1].fenced


def test_the_shutdown_offset_is_the_end_of_the_batch_with_the_flag() -> None:
    """The broker may go when the slowest has applied the moves, which end with that batch."""
    image = replayed(registration(fenced=False))
    image = replayed(NoOpRecord(), change(in_controlled_shutdown=1), NoOpRecord(), image=image)
    broker = image.cluster.brokers[1]
    assert broker.in_controlled_shutdown
    assert broker.controlled_shutdown_offset == 4
    assert not broker.active


def test_the_shutdown_offset_is_set_once() -> None:
    """Later calls do not move it."""
    image = replayed(registration(), change(in_controlled_shutdown=1))
    image = replayed(change(in_controlled_shutdown=1), NoOpRecord(), image=image)
    assert image.cluster.brokers[1].controlled_shutdown_offset == 2


def test_fencing_does_not_clear_the_shutdown_flag() -> None:
    """A stopping broker that times out is fenced and flagged."""
    image = replayed(registration(), change(in_controlled_shutdown=1), change(fenced=1))
    image = replayed(change(fenced=-1), FenceBrokerRecord(1, 10), image=image)
    broker = image.cluster.brokers[1]
    assert broker.in_controlled_shutdown
    assert broker.controlled_shutdown_offset == 3


def test_a_new_incarnation_clears_the_flags() -> None:
    """It is another process: fenced, and not leaving."""
    image = replayed(registration(), change(fenced=-1, in_controlled_shutdown=1))
    broker = replayed(registration(incarnation=2), image=image).cluster.brokers[1]
    assert broker.fenced
    assert not broker.in_controlled_shutdown
    assert broker.controlled_shutdown_offset == -1
    assert broker.broker_epoch == 20


def test_the_same_incarnation_keeps_flags_and_epoch() -> None:
    """A process that amends its registration stays what it was."""
    image = replayed(registration(), change(fenced=-1, in_controlled_shutdown=1))
    image = replayed(registration(rack="b", broker_epoch=99), NoOpRecord(), image=image)
    broker = image.cluster.brokers[1]
    assert broker.rack == "b"
    assert broker.broker_epoch == 10
    assert not broker.fenced
    assert broker.in_controlled_shutdown
    assert broker.controlled_shutdown_offset == 2


def test_the_same_incarnation_does_not_gain_flags_either() -> None:
    """An amendment can't put a broker into shutdown."""
    image = replayed(registration(fenced=False))
    image = replayed(registration(in_controlled_shutdown=True), image=image)
    assert not image.cluster.brokers[1].in_controlled_shutdown
    assert not image.cluster.brokers[1].fenced


LITERAL = FeatureLevelRecord("logberg.version", 1)


@pytest.mark.parametrize("fenced", [True, False])
@pytest.mark.parametrize("leaving", [True, False])
def test_an_amendment_is_literal_behind_the_upgrade(fenced: bool, leaving: bool) -> None:
    """From logberg.version 1 on, a reader that takes the record at its word has our image."""
    image = replayed(LITERAL, registration(), change(fenced=-1, in_controlled_shutdown=1))
    amendment = registration(
        rack="b", broker_epoch=99, fenced=fenced, in_controlled_shutdown=leaving
    )
    broker = replayed(amendment, NoOpRecord(), image=image).cluster.brokers[1]
    assert broker_record(broker) == amendment
    # An amendment neither begins a shutdown anew nor keeps the offset of one that is over.
    assert broker.controlled_shutdown_offset == (3 if leaving else -1)


def test_an_amendment_that_begins_a_shutdown_begins_it_there() -> None:
    """No controller writes it, and replay takes it at its word."""
    image = replayed(LITERAL, registration())
    image = replayed(registration(in_controlled_shutdown=True), NoOpRecord(), image=image)
    assert image.cluster.brokers[1].controlled_shutdown_offset == 4


@pytest.mark.parametrize("level", [0, 1])
def test_the_level_counts_as_of_the_record(level: int) -> None:
    """Earlier records of the same batch count, later ones do not."""
    amendment = registration(broker_epoch=99)
    raised = FeatureLevelRecord("logberg.version", level)
    image = replayed(registration(), raised, amendment)
    assert image.cluster.brokers[1].broker_epoch == (99 if level else 10)
    image = replayed(registration(), amendment, LITERAL)
    assert image.cluster.brokers[1].broker_epoch == 10


def test_log_dirs_empty_is_untouched() -> None:
    """Kafka's empty default doesn't take a broker's directories away."""
    one, two = bytes(15) + b"\x07", bytes(15) + b"\x08"
    image = replayed(registration(log_dirs=(one,), cordoned_log_dirs=(one,)), change(fenced=-1))
    assert image.cluster.brokers[1].log_dirs == (one,)
    assert image.cluster.brokers[1].cordoned_log_dirs == (one,)
    image = replayed(change(log_dirs=(two,), cordoned_log_dirs=()), image=image)
    assert image.cluster.brokers[1].log_dirs == (two,)
    assert image.cluster.brokers[1].cordoned_log_dirs == ()


def test_unregister_forgets_the_broker_and_keeps_its_configs() -> None:
    """The next broker that registers the id gets the configs, as in Kafka."""
    image = replayed(registration(), ConfigRecord(4, "1", "num.io.threads", "8"))
    image = replayed(UnregisterBrokerRecord(1, 10), image=image)
    assert 1 not in image.cluster.brokers
    assert image.configs.of(4, "1") == {"num.io.threads": "8"}


def controller(incarnation: int) -> RegisterControllerRecord:
    return RegisterControllerRecord(3, bytes([incarnation]) * 16, False, (), ())


def test_controllers_register_and_unregister() -> None:
    """The newest registration of an id counts."""
    image = replayed(controller(1), controller(2))
    assert image.cluster.controllers[3].incarnation_id == bytes([2]) * 16
    assert 3 not in replayed(UnregisterControllerRecord(3), image=image).cluster.controllers


REGISTERED = replayed(registration())


@pytest.mark.parametrize(
    ("image", "record", "sentence"),
    [
        (EMPTY, change(), "broker 1 isn't registered"),
        (EMPTY, UnregisterBrokerRecord(1, 10), "broker 1 isn't registered"),
        (EMPTY, FenceBrokerRecord(1, 10), "broker 1 isn't registered"),
        (EMPTY, UnfenceBrokerRecord(1, 10), "broker 1 isn't registered"),
        (REGISTERED, BrokerRegistrationChangeRecord(1, 9), "broker 1 has epoch 10, not 9"),
        (REGISTERED, UnregisterBrokerRecord(1, 11), "broker 1 has epoch 10, not 11"),
        (REGISTERED, FenceBrokerRecord(1, 11), "broker 1 has epoch 10, not 11"),
        (REGISTERED, UnfenceBrokerRecord(1, 11), "broker 1 has epoch 10, not 11"),
        (REGISTERED, change(fenced=2), "it must be -1, 0 or 1"),
        (REGISTERED, change(in_controlled_shutdown=-1), "it must be 0 or 1"),
        (EMPTY, UnregisterControllerRecord(3), "controller 3 isn't registered"),
    ],
)
def test_what_makes_no_sense_stops_replay(
    image: MetadataImage, record: BrokerRegistrationChangeRecord, sentence: str
) -> None:
    """The error names the offset and says why."""
    with pytest.raises(ReplayError, match=sentence) as caught:
        MetadataDelta(image).replay(record, 77)
    assert caught.value.offset == 77
    assert "offset 77" in str(caught.value)


def test_a_directory_of_several_brokers_has_all_of_them_as_owners() -> None:
    """The controller refuses that, but a log may say it; then one of them lets it go."""
    disk, own = b"d" * 16, b"o" * 16

    def owners(image: MetadataImage) -> dict[bytes, tuple[int, ...]]:
        return dict(image.cluster.by_directory.items())

    two = [registration(broker_id=2, log_dirs=(disk,)), registration(log_dirs=(disk, own))]
    image = replayed(*two)
    assert owners(image) == {disk: (1, 2), own: (1,)}
    image = replayed(*two, change(log_dirs=(own,)))
    assert owners(image) == {disk: (2,), own: (1,)}
    image = replayed(*two, UnregisterBrokerRecord(1, 10), UnregisterBrokerRecord(2, 10))
    assert owners(image) == {}


def test_a_rack_is_there_while_it_has_a_broker_that_takes_replicas() -> None:
    """In order: brokers without a rack first. A stopping broker and a cordoned one take none."""

    def names(*records: Any) -> list[str]:
        return [name for _, name in (rack.name for rack in replayed(*records).cluster.racks)]

    zones = [registration(broker_id=n, rack=rack) for n, rack in enumerate(("b", "a", None, "a"))]
    assert names(*zones) == ["", "a", "b"]
    stopping = BrokerRegistrationChangeRecord(0, 10, in_controlled_shutdown=1)
    assert names(*zones, stopping) == ["", "a"]
    assert names(*zones, UnregisterBrokerRecord(1, 10)) == ["", "a", "b"]
    assert names(*zones, UnregisterBrokerRecord(1, 10), UnregisterBrokerRecord(3, 10)) == ["", "b"]
