"""Faults of disks and clocks that damage nothing: slow, stuck, full, read-only, failing, skewed."""

import errno
from collections.abc import Callable, Mapping
from functools import partial

from runtime.simulated.disk_faults import FAST, SLOW, STUCK, DiskProfile
from runtime.simulated.fault_injector import FaultInjector

_CHANGES = ("write", "sync", "create", "rename", "unlink", "sync_folder")
"""The operations that may fail with EIO. On a read-only file system all of them fail."""


class DeviceFaults:
    """The device faults. Each ends with the device as before, and with the node running."""

    def __init__(self, injector: FaultInjector) -> None:
        self._injector = injector
        self.acts: Mapping[str, Callable[[], None]] = {
            "slow_disk": partial(self._disk, "slow disk", SLOW),
            "stuck_disk": partial(self._disk, "stuck disk", STUCK),
            "full_disk": lambda: self._full_disks(1),
            "full_disks": lambda: self._full_disks(
                injector.dice.randint(min(2, len(injector.nodes())), len(injector.nodes()))
            ),
            "read_only_disk": self._read_only,
            "disk_error": self._disk_error,
            "read_error": self._read_error,
            "clock_rate": self._clock_rate,
            "wall_jump": self._wall_jump,
        }

    def _disk(self, what: str, profile: DiskProfile) -> None:
        injector = self._injector
        node_id = injector.any_or_leader()
        injector.on([node_id])
        faults = injector.host(node_id).faults
        faults.set_profile(profile)
        injector.for_a_while(what, node_id, partial(faults.set_profile, FAST))

    def _full_disks(self, count: int) -> None:
        injector = self._injector
        nodes = injector.some(count)
        injector.on(nodes)
        hosts = [injector.host(node_id) for node_id in nodes]
        for host in hosts:
            room = injector.dice.randrange(20_000)
            host.faults.capacity_bytes = host.platter.used_bytes() + room

        def end() -> None:
            for node_id, host in zip(nodes, hosts, strict=True):
                host.faults.capacity_bytes = None
                # The node may have stopped itself: that is its rule on a full disk.
                injector.start(node_id)

        injector.for_a_while("full disk", nodes, end)

    def _read_only(self) -> None:
        """Let every change fail with EROFS, as on a file system after an error."""
        injector = self._injector
        node_id = injector.any_or_leader()
        injector.on([node_id])
        faults = injector.host(node_id).faults
        for operation in _CHANGES:
            faults.fail(operation, error=errno.EROFS, lasting=True)
        injector.for_a_while("read-only disk", node_id, partial(self._succeed, node_id))

    def _disk_error(self) -> None:
        """Fail one of the next changes of a disk. The node may stop itself."""
        injector = self._injector
        node_id = injector.any_or_leader()
        injector.on([node_id])
        operation = injector.dice.choice(_CHANGES)
        injector.host(node_id).faults.fail(operation, injector.dice.randrange(8))
        what = f"error of {operation}"
        injector.for_a_while(what, node_id, partial(self._succeed, node_id))

    def _read_error(self) -> None:
        """Fail one of the next reads."""
        injector = self._injector
        node_id = injector.any()
        injector.on([node_id])
        injector.host(node_id).faults.fail("read", injector.dice.randrange(8))
        injector.for_a_while("error of read", node_id, partial(self._succeed, node_id))

    def _succeed(self, node_id: int) -> None:
        self._injector.host(node_id).faults.succeed()
        self._injector.start(node_id)

    def _clock_rate(self) -> None:
        injector = self._injector
        machine = injector.host(injector.any()).machine
        injector.on([machine.node_id])
        machine.set_rate(injector.dice.uniform(*injector.fault_schedule.rates))
        whom = f"{machine.node_id} at {machine.rate:.3f}"
        injector.for_a_while("clock rate", whom, partial(machine.set_rate, 1.0))

    def _wall_jump(self) -> None:
        injector = self._injector
        seconds = injector.dice.choice((-86_400.0, -3_600.0, -1.0, 0.5, 3_600.0, 86_400.0))
        node_id = injector.any()
        injector.on([node_id])
        injector.host(node_id).machine.jump_wall(seconds)
        injector.record(f"wall jump {node_id} by {seconds} s")
