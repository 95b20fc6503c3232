"""The loads of `make lateness` that brokers make when they come, stop and are forgotten.

Rule: as in `benchmarks.lateness.loads`, which takes these rows into its table.
"""

import asyncio

from benchmarks.instruments.simulated_brokers import SimulatedBroker
from benchmarks.lateness.beside import beat, beside
from benchmarks.lateness.load import Load
from benchmarks.lateness.stage import BROKERS, Stage
from metadata.messages.fetch import WantedState


async def _registrations(stage: Stage) -> None:
    """Brokers that hold nothing register, come online, stop, and are forgotten."""
    for turn in stage.going_on():
        broker = SimulatedBroker(BROKERS + 1000 + turn)
        for wanted in (WantedState.ONLINE, WantedState.ONLINE, WantedState.STOPPING):
            await beat(stage, broker, wanted)
        path = f"/v1/brokers/{broker.broker_id}?force=true"
        status, answer = await stage.change("DELETE", path)
        assert status == 200, answer


async def _holder_restarts(stage: Stage) -> None:
    """A broker that holds many replicas stops in order, and its next process comes online."""
    number = len(stage.brokers.brokers) - 1
    stage.beaten.add(number)
    for _ in stage.going_on():
        old = stage.brokers.brokers[number]
        while not (await beat(stage, old, WantedState.STOPPING)).may_stop:
            await stage.brokers.beat_once(number)
        new = stage.brokers.brokers[number] = SimulatedBroker(old.broker_id)
        while new.state != "online":
            await beat(stage, new)
            await asyncio.sleep(0.05)
    stage.beaten.discard(number)


async def _holder_forgotten(stage: Stage) -> None:
    """A broker that holds many replicas is unregistered, and comes back."""
    number = len(stage.brokers.brokers) - 2
    stage.beaten.add(number)
    broker_id = stage.brokers.brokers[number].broker_id
    await beside(stage, stage.change("DELETE", f"/v1/brokers/{broker_id}?force=true"))
    new = stage.brokers.brokers[number] = SimulatedBroker(broker_id)
    while new.state != "online":
        await beat(stage, new)
        await asyncio.sleep(0.05)
    stage.beaten.discard(number)


async def _dry_forgetting(stage: Stage) -> None:
    """What it would write to forget a broker that holds many replicas: all rounds in one reply."""
    broker_id = stage.brokers.brokers[-2].broker_id
    for _ in stage.going_on():
        status, _ = await stage.ask("DELETE", f"/v1/brokers/{broker_id}?force=true&dryRun=true")
        assert status == 200, status


BROKER_LOADS = (
    Load(
        "brokers come and go",
        ("metadata_fetch", "unregister_broker"),
        _registrations,
        ("RegisterBrokerRecord", "BrokerRegistrationChangeRecord", "UnregisterBrokerRecord"),
    ),
    Load(
        "a broker with replicas restarts",
        ("metadata_fetch",),
        _holder_restarts,
        ("PartitionChangeRecord", "BeginTransactionRecord", "EndTransactionRecord"),
    ),
    Load("a broker with replicas is forgotten", ("unregister_broker",), _holder_forgotten),
    Load("a dry run of forgetting a broker", ("unregister_broker",), _dry_forgetting),
)
