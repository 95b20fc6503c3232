"""Faults of processes: killed, killed in the middle of a write, without power, frozen."""

from collections.abc import Callable, Mapping
from functools import partial

from runtime.simulated.strikes import Strikes


class CrashFaults:
    """Each ends with the process running again."""

    def __init__(self, strikes: Strikes) -> None:
        self._strikes = strikes
        self.acts: Mapping[str, Callable[[], None]] = {
            "kill": partial(self._kill, strikes.any),
            "kill_leader": partial(self._kill, strikes.leader),
            "kill_at_step": self._kill_at_step,
            "kill_at_start": self._kill_at_start,
            "power": self._power,
            "pause": partial(self._pause, strikes.any),
            "pause_leader": partial(self._pause, strikes.leader),
        }

    def _kill(self, pick: Callable[[], int]) -> None:
        strikes = self._strikes
        node_id = pick()
        strikes.on([node_id])
        strikes.host(node_id).kill()
        strikes.for_a_while("kill", node_id, partial(strikes.start, node_id))

    def _kill_at_step(self) -> None:
        """Let a process die at one of its next changes of its disk, in the middle of a write."""
        strikes = self._strikes
        node_id = strikes.any()
        strikes.on([node_id])
        faults = strikes.host(node_id).faults
        faults.kill_at(strikes.dice.randrange(30), strikes.dice.random())

        def end() -> None:
            faults.spare()
            strikes.start(node_id)

        strikes.for_a_while("kill at step", node_id, end)

    def _kill_at_start(self) -> None:
        """Kill a process, and its successor while it opens its folder."""
        strikes = self._strikes
        node_id = strikes.any()
        strikes.on([node_id])
        host = strikes.host(node_id)
        host.kill()
        host.faults.kill_at(strikes.dice.randrange(16), strikes.dice.random())
        strikes.start(node_id)

        def end() -> None:
            host.faults.spare()
            strikes.start(node_id)

        strikes.for_a_while("kill at start", node_id, end)

    def _power(self) -> None:
        strikes = self._strikes
        size = len(strikes.nodes())
        count = strikes.dice.choice((1, (size - 1) // 2, size // 2 + 1, size))
        nodes = strikes.some(max(count, 1))
        strikes.on(nodes)
        for node_id in nodes:
            strikes.host(node_id).lose_power()

        def restore() -> None:
            for node_id in nodes:
                strikes.start(node_id)

        strikes.for_a_while("power", nodes, restore)

    def _pause(self, pick: Callable[[], int]) -> None:
        strikes = self._strikes
        node_id = pick()
        strikes.on([node_id])
        strikes.host(node_id).pause()
        strikes.for_a_while("pause", node_id, strikes.host(node_id).resume)
