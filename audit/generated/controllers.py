"""Controllers: elected, restarted, registered.

Rule: an epoch begins with the record that says so, and never ends otherwise.
"""

from audit.generated.stage import CONTROLLERS, Stage


class Controllers:
    """What happens to controllers."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def begin(self) -> None:
        """The first leader begins the log; each controller says where it is and what it can do."""
        self._stage.rehearsal.elect(CONTROLLERS[0], 1)
        self._stage.collect()

    def restart_all(self) -> None:
        """Each controller is restarted, the leader last: another leads then."""
        rehearsal = self._stage.rehearsal
        old = rehearsal.leader_id
        for number in CONTROLLERS:
            if number != old:
                rehearsal.restart(number)
        self.failover()
        rehearsal.restart(old)
        rehearsal.announce()
        self._stage.collect()

    def failover(self) -> None:
        """Another controller is elected."""
        stage = self._stage
        others = [number for number in CONTROLLERS if number != stage.leader]
        epoch = stage.rehearsal.epoch + stage.dice.between(1, 2)
        stage.rehearsal.elect(stage.dice.pick(others), epoch)
        stage.collect()
