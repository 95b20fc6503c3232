"""Controllers: registered, elected, restarted.

Rule: an epoch begins with the record that says so, and never ends otherwise.
"""

from audit.generated.pen import Written
from audit.generated.people import controller_actor
from audit.generated.stage import Stage
from metadata.records import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
    SecurityProtocol,
)


class Controllers:
    """What happens to controllers."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def register(self) -> None:
        """Each controller's new process says where it is and what it can do."""
        stage = self._stage
        for voter in stage.voters:
            host = f"controller-{voter.voter_id}.example.net"
            record = RegisterControllerRecord(
                voter.voter_id,
                stage.dice.uuid(),
                False,
                (ControllerEndpoint("HTTPS", host, 9191, SecurityProtocol.SSL),),
                (
                    ControllerFeature("kraft.version", 0, 1),
                    ControllerFeature("metadata.version", 7, stage.software),
                ),
            )
            stage.write(controller_actor(voter.voter_id), "RegisterController", [record])

    def failover(self) -> Written:
        """Another controller is elected."""
        stage = self._stage
        stage.controller = 1 + (stage.controller + stage.dice.below(2)) % 3
        stage.pen.epoch += stage.dice.between(1, 2)
        written = stage.write(
            controller_actor(stage.controller),
            "BeginEpoch",
            [stage.begin_epoch()],
            "elected",
        )
        subject = f"controller:{stage.controller}"
        principal = f"Controller:{stage.controller}"
        stage.pen.tell("controller_failover", subject, written, principal, "", written)
        return written
