"""Works: what people plan and do to brokers, over hours.

Rule: a work takes the brokers it needs when it begins and gives them back at its end, then calls
`then`; it is told as a fact when it is over, from its first offset to its last.
"""

from audit.generated.brokers import Brokers
from audit.generated.controllers import Controllers
from audit.generated.model import Broker
from audit.generated.people import BOB, DEPLOY_BOT
from audit.generated.replicas import Replicas
from audit.generated.rhythm import MINUTE_MS, SECOND_MS
from audit.generated.stage import Stage, Then, nothing
from metadata.records import ConfigRecord, ConfigResourceType, UnregisterBrokerRecord


class Works:
    """Deployments and replacements; each begins when it is called."""

    def __init__(
        self, stage: Stage, brokers: Brokers, replicas: Replicas, controllers: Controllers
    ) -> None:
        self._stage = stage
        self._brokers = brokers
        self._replicas = replicas
        self._controllers = controllers

    def deployment(self, then: Then) -> None:
        """Every broker is restarted, one after another."""
        stage = self._stage
        stage.software += 1
        ids = list(stage.cluster.brokers)
        told = stage.teller(
            "deployment",
            "brokers",
            DEPLOY_BOT.principal,
            f"deploy-bot rolled out a release to {len(self._brokers.free())} brokers, one by one, "
            "then to the controllers.",
        )
        label = ConfigRecord(
            ConfigResourceType.BROKER, "", "deployment.label", f"2026.{stage.software}"
        )
        stage.answer(DEPLOY_BOT, "IncrementalAlterConfigs", [label], "rolling restart begins")

        def step() -> None:
            while ids:
                broker = stage.cluster.brokers[ids.pop(0)]
                if broker.active and not broker.busy:
                    self._brokers.restart(broker, pause)
                    return
            self._controllers.failover()
            self._controllers.register()
            told()
            then()

        def pause() -> None:
            stage.after(30 * SECOND_MS + stage.dice.around(MINUTE_MS), step)

        step()

    def restart_one(self) -> None:
        """Somebody restarts a broker."""
        free = self._brokers.free()
        if len(free) > 2:
            self._brokers.restart(self._stage.dice.pick(free), nothing)

    def replace_broker(self, then: Then) -> None:
        """A broker's partitions move to a new one, and it is forgotten."""
        stage = self._stage
        free = self._brokers.free()
        if len(free) < 4:
            then()
            return
        old = stage.dice.pick(free)
        new = Broker(max(stage.cluster.brokers) + 1, old.rack, (stage.dice.uuid(),))
        told = stage.teller(
            "broker_replaced",
            f"broker:{old.id}",
            BOB.principal,
            f"bob replaced broker {old.id} by broker {new.id}; the balancer moved "
            f"{len(old.hosted)} replicas.",
        )
        old.busy = new.busy = True
        old.cordoned = True
        stage.cluster.brokers[new.id] = new
        wave = max(10, len(old.hosted) // 20)

        def move() -> None:
            if not len(old.hosted):
                self._brokers.shut_down(old)
                stage.after(2 * SECOND_MS, stop)
                return
            movable = [
                partition
                for partition in old.hosted.in_order()
                if not partition.moving
                and partition.leader >= 0
                and new.id not in partition.replicas
                and old.id in partition.isr
            ]
            self._replicas.move(movable[:wave], old.id, new.id)
            stage.after(4 * MINUTE_MS, move)

        def stop() -> None:
            self._brokers.stopped(old)
            stage.after(10 * MINUTE_MS, forget)

        def forget() -> None:
            record = UnregisterBrokerRecord(old.id, old.epoch)
            del stage.cluster.brokers[old.id]
            stage.answer(BOB, "UnregisterBroker", [record], "hardware is out of warranty")
            new.busy = False
            told()
            then()

        self._brokers.come_back(new, new_process=True, then=move)
