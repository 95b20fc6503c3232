"""Works: what people plan and do to brokers, over hours.

Rule: a work takes the brokers it needs when it begins and gives them back at its end, then calls
`then`; it is told as a fact when it is over, from its first offset to its last.
"""

from audit.generated.brokers import SOFTWARE_MOST, Brokers
from audit.generated.cast import BrokerProcess, Cast
from audit.generated.controllers import Controllers
from audit.generated.coordinating import Coordinating
from audit.generated.people import BOB, DEPLOY_BOT
from audit.generated.replicas import Replicas
from audit.generated.rhythm import MINUTE_MS, SECOND_MS
from audit.generated.stage import Stage, Then, nothing


class Works:
    """Deployments and replacements; each begins when it is called."""

    def __init__(
        self,
        stage: Stage,
        cast: Cast,
        brokers: Brokers,
        replicas: Replicas,
        controllers: Controllers,
        coordinating: Coordinating,
    ) -> None:
        self._stage = stage
        self._cast = cast
        self._coordinating = coordinating
        self._brokers = brokers
        self._replicas = replicas
        self._controllers = controllers
        self._deployments = 0

    def deployment(self, then: Then) -> None:
        """Every broker is restarted, one after another."""
        stage = self._stage
        cast, brokers = self._cast, self._brokers
        brokers.software = min(brokers.software + 1, SOFTWARE_MOST)
        self._deployments += 1
        ids = list(cast.brokers)
        told = stage.teller(
            "deployment",
            "brokers",
            DEPLOY_BOT.principal,
            f"deploy-bot rolled out a release to {len(cast.free(stage.image))} brokers, "
            "one by one, then to the controllers.",
        )
        release = self._coordinating.begin_deployment(f"2026.{self._deployments}")

        def step() -> None:
            while ids:
                broker = cast.brokers.get(ids.pop(0))
                if broker is not None and broker.is_active(stage.image) and not broker.busy:
                    brokers.restart(broker, pause)
                    return
            self._controllers.restart_all()
            release()
            told()
            then()

        def pause() -> None:
            stage.after(30 * SECOND_MS + stage.dice.around(MINUTE_MS), step)

        step()

    def restart_one(self) -> None:
        """Somebody restarts a broker."""
        free = self._cast.free(self._stage.image)
        if len(free) > 2:
            self._brokers.restart(self._stage.dice.pick(free), nothing)

    def replace_broker(self, then: Then) -> None:
        """A broker's partitions move to a new one, and it is forgotten."""
        stage = self._stage
        free = self._cast.free(self._stage.image)
        if len(free) < 4:
            then()
            return
        old = stage.dice.pick(free)
        new = BrokerProcess(max(self._cast.brokers) + 1, old.rack, (stage.dice.uuid(),))
        held = stage.image.topics.replicas_on(old.id)
        told = stage.teller(
            "broker_replaced",
            f"broker:{old.id}",
            BOB.principal,
            f"bob replaced broker {old.id} by broker {new.id}; the balancer moved {held} replicas.",
        )
        old.busy = new.busy = True
        self._cast.brokers[new.id] = new
        wave = max(10, held // 20)

        def cordon_and_move() -> None:
            self._brokers.cordon(old)
            move()

        def move() -> None:
            image = stage.rehearsal.settled()
            topics = image.topics
            if not topics.replicas_on(old.id):
                self._brokers.shut_down(old)
                stage.after(2 * SECOND_MS, stop)
                return
            movable = []
            for key in topics.held_by(old.id):
                partition = topics.partitions[key]
                if (
                    not (partition.adding or partition.removing)
                    and partition.leader >= 0
                    and new.id not in partition.replicas
                    and old.id in partition.isr
                ):
                    movable.append(key)
                    if len(movable) == wave:
                        break
            self._replicas.move(movable, old.id, new.id)
            stage.after(4 * MINUTE_MS, move)

        def stop() -> None:
            self._brokers.stopped(old)
            stage.after(10 * MINUTE_MS, forget)

        def forget() -> None:
            del self._cast.brokers[old.id]
            stage.ask(BOB, "unregister_broker", None, "hardware is out of warranty", id=str(old.id))
            new.busy = False
            told()
            then()

        self._brokers.come_back(new, new_process=True, then=cordon_and_move)
