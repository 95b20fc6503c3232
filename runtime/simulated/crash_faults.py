"""Faults of processes: a kill, a kill in the middle of a write, a loss of power, a pause."""

from collections.abc import Callable, Mapping
from functools import partial

from runtime.simulated.fault_injector import FaultInjector


class CrashFaults:
    """The crash faults. Each ends with the process running again."""

    def __init__(self, injector: FaultInjector) -> None:
        self._injector = injector
        self.acts: Mapping[str, Callable[[], None]] = {
            "kill": partial(self._kill, injector.any),
            "kill_leader": partial(self._kill, injector.leader),
            "kill_at_step": self._kill_at_step,
            "kill_at_start": self._kill_at_start,
            "power": self._power,
            "pause": partial(self._pause, injector.any),
            "pause_leader": partial(self._pause, injector.leader),
        }

    def _kill(self, pick: Callable[[], int]) -> None:
        injector = self._injector
        node_id = pick()
        injector.on([node_id])
        injector.host(node_id).kill()
        injector.for_a_while("kill", node_id, partial(injector.start, node_id))

    def _kill_at_step(self) -> None:
        """Kill a process at one of its next changes of its disk, even in the middle of a write."""
        injector = self._injector
        node_id = injector.any()
        injector.on([node_id])
        faults = injector.host(node_id).faults
        faults.kill_at(injector.dice.randrange(30), injector.dice.random())

        def end() -> None:
            faults.spare()
            injector.start(node_id)

        injector.for_a_while("kill at step", node_id, end)

    def _kill_at_start(self) -> None:
        """Kill a process, and then the next one while it opens its folder."""
        injector = self._injector
        node_id = injector.any()
        injector.on([node_id])
        host = injector.host(node_id)
        host.kill()
        host.faults.kill_at(injector.dice.randrange(16), injector.dice.random())
        injector.start(node_id)

        def end() -> None:
            host.faults.spare()
            injector.start(node_id)

        injector.for_a_while("kill at start", node_id, end)

    def _power(self) -> None:
        injector = self._injector
        size = len(injector.nodes())
        count = injector.dice.choice((1, (size - 1) // 2, size // 2 + 1, size))
        nodes = injector.some(max(count, 1))
        injector.on(nodes)
        for node_id in nodes:
            injector.host(node_id).lose_power()

        def restore() -> None:
            for node_id in nodes:
                injector.start(node_id)

        injector.for_a_while("power", nodes, restore)

    def _pause(self, pick: Callable[[], int]) -> None:
        injector = self._injector
        node_id = pick()
        injector.on([node_id])
        injector.host(node_id).pause()
        injector.for_a_while("pause", node_id, injector.host(node_id).resume)
