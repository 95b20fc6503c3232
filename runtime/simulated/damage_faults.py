"""Damage faults: corrupted or misplaced bytes, lost, cut or old files, swapped folders.

Rule: damage stays within what Logberg promises to survive.

- Only a minority of the nodes is damaged; the seed chooses it at the start.
- Some damage can't be noticed by a reader: to the newest bytes of the journal, or a whole folder
  that is replaced by an older copy. It happens only while the fault atlas says that a majority of
  the other nodes holds everything that was there.
- Any two nodes may get each other's folder. Both must refuse it, and later get their own back.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from runtime.simulated.fault_injector import FaultInjector
from runtime.simulated.host import SimulatedHost
from runtime.simulated.platter import folder_of

RETRIES = 40
RETRY_US = 50_000
ROT_BITS = (1, 1, 1, 2, 8)
MISDIRECTED_BYTES = (1, 16, 100, 512, 4096)


class FaultAtlas(Protocol):
    """Says which files of a cluster may be damaged, and is told what was damaged."""

    def open_to_damage(self) -> bool:
        """Tell whether damage may begin: every node has completed its first start."""

    def files(self, node_id: int) -> Sequence[str]:
        """Return the names of the files in which a node promises to find damage."""

    def has_begun(self, node_id: int) -> bool:
        """Tell whether a node is running and has accepted its folder as its own."""

    def seen_below(self, node_id: int, name: str) -> int:
        """Return the length of a file's part in which the next read surely finds damage."""

    def is_deep(self, name: str) -> bool:
        """Tell whether a node's promises to the quorum depend on a file."""

    def is_covered(self, node_id: int) -> bool:
        """Tell whether a majority of the others holds all that a node may have promised."""

    def forgot(self, node_id: int) -> None:
        """The node was damaged: it may know less than before."""

    def changed_hands(self, nodes: Sequence[int]) -> None:
        """These nodes have each other's folders now. If empty, they have their own again."""


class DamageFaults:
    """The damage faults."""

    def __init__(self, injector: FaultInjector, fault_atlas: FaultAtlas) -> None:
        self._injector = injector
        self._fault_atlas = fault_atlas
        self._dice = injector.world.random("damage")
        self._swapped: tuple[int, int] | None = None
        self._swap_hosts: Callable[[SimulatedHost, SimulatedHost], None] = _swap_folders
        nodes = injector.nodes()
        self.victims = sorted(self._dice.sample(nodes, (len(nodes) - 1) // 2))
        self.acts: Mapping[str, Callable[[], None]] = {
            "rot": self._rot,
            "rot_at_rest": partial(self._at_rest, "rot at rest", self._rot_files),
            "misdirected_write": self._misdirect,
            "lost_file": partial(self._at_rest, "lost file", self._lose_file),
            "cut_file": partial(self._at_rest, "cut file", self._cut_file),
            "old_file": partial(self._later, "old file", self._put_back_file),
            "old_folder": partial(self._later, "old folder", self._put_back_folder),
            "wiped_disk": partial(self._at_rest, "wiped disk", self._wipe),
            "swapped_folders": self._swap,
        }
        self._saved: dict[int, dict[str, bytes]] = {}
        self.acts_at_once: Mapping[str, Callable[[], None]] = {
            "old_file": partial(self._put_back_saved, "old file", self._put_back_file),
            "old_folder": partial(self._put_back_saved, "old folder", self._put_back_folder),
        }
        """The faults that put back the copy that `would_hit` has saved."""

    def heal(self) -> None:
        """Give swapped folders back. Damage stays: the node must repair itself."""
        if self._swapped is not None:
            self._swap_back(self._swapped)

    def would_hit(self, kind: str, node_id: int) -> bool:
        """Tell whether a fault would hit a node now.

        For a fault that puts old files back, the first call saves a copy of the node's files.
        """
        if kind == "swapped_folders":
            return self._swapped is None and self._fault_atlas.open_to_damage()
        if node_id not in self._free() or not self._fault_atlas.open_to_damage():
            return False
        if kind not in self.acts_at_once:
            return True
        if node_id not in self._saved:
            self._saved[node_id] = self._injector.host(node_id).platter.snapshot()
        return self._fault_atlas.is_covered(node_id)

    def _free(self) -> list[int]:
        return [n for n in self.victims if self._swapped is None or n not in self._swapped]

    def _victim(self) -> int | None:
        """Pick the node to damage; None: no node may be damaged now."""
        free = self._free()
        if not free or not self._fault_atlas.open_to_damage():
            return None
        aim = self._injector.aim
        return aim if aim in free else self._dice.choice(free)

    # -- bytes -------------------------------------------------------------------------------

    def _rot(self) -> None:
        """Invert bits while the process runs. It reads the changed bits from now on."""
        node_id = self._victim()
        place = None if node_id is None else self._place(node_id, covered=False)
        if node_id is not None and place is not None:
            self._injector.on([node_id])
            self._flip(node_id, *place)

    def _misdirect(self) -> None:
        """Let bytes that were written be elsewhere.

        Their place holds zeros, and they replace other bytes.
        """
        node_id = self._victim()
        if node_id is None:
            return
        source, target = self._place(node_id, covered=False), self._place(node_id, covered=False)
        if source is None or target is None:
            return
        self._injector.on([node_id])
        platter = self._injector.host(node_id).platter
        length = self._dice.choice(MISDIRECTED_BYTES)
        (name, bound), (other, other_bound) = source, target
        position = self._dice.randrange(bound)
        data = bytes(platter.names[name].content[position : min(position + length, bound)])
        at = self._dice.randrange(other_bound)
        platter.overwrite(name, position, bytes(len(data)))
        platter.overwrite(other, at, data[: other_bound - at])
        self._fault_atlas.forgot(node_id)
        what = f"{len(data)} bytes of {name} at {position} went to {other} at {at}"
        self._injector.record(f"misdirected write {node_id}: {what}")

    def _place(self, node_id: int, *, covered: bool) -> tuple[str, int] | None:
        """Draw a file; return its name and how many of its bytes may be damaged."""
        platter, fault_atlas = self._injector.host(node_id).platter, self._fault_atlas
        names = [name for name in fault_atlas.files(node_id) if platter.names[name].content]
        if not names:
            return None
        name = self._draw_file(names)
        size = len(platter.names[name].content)
        bound = size if covered else min(size, fault_atlas.seen_below(node_id, name))
        return (name, bound) if bound else None

    def _draw_file(self, names: Sequence[str]) -> str:
        """Draw a folder, rarely the top one, then a file in it. Damage to the top can be final."""
        folders = sorted({folder_of(name) for name in names})
        often = [folder for folder in folders for _ in range(8 if folder else 1)]
        folder = self._dice.choice(often)
        return self._dice.choice([name for name in names if folder_of(name) == folder])

    def _flip(self, node_id: int, name: str, bound: int) -> None:
        platter = self._injector.host(node_id).platter
        for _ in range(self._dice.choice(ROT_BITS)):
            position = self._dice.randrange(bound)
            byte = platter.names[name].content[position] ^ (1 << self._dice.randrange(8))
            platter.overwrite(name, position, bytes([byte]))
            self._injector.record(f"rot {node_id}: {name} at {position}")
        self._fault_atlas.forgot(node_id)

    # -- files and folders, while the node is down --------------------------------------------

    def _at_rest(self, what: str, act: Callable[[int, bool], None]) -> None:
        """Stop a node, damage its files, and start it again later."""
        node_id = self._victim()
        if node_id is not None:
            self._stop_and(what, node_id, act, covered=self._fault_atlas.is_covered(node_id))

    def _stop_and(
        self, what: str, node_id: int, act: Callable[[int, bool], None], *, covered: bool
    ) -> None:
        injector = self._injector
        injector.on([node_id])
        host = injector.host(node_id)
        if self._dice.random() < 0.5:
            host.lose_power()
        else:
            host.kill()
        act(node_id, covered)
        self._fault_atlas.forgot(node_id)
        injector.for_a_while(what, node_id, partial(injector.start, node_id))

    def _rot_files(self, node_id: int, covered: bool) -> None:
        for _ in range(self._dice.choice((1, 1, 2, 4))):
            place = self._place(node_id, covered=covered)
            if place is not None:
                self._flip(node_id, *place)

    def _a_file(self, node_id: int, covered: bool) -> str | None:
        fault_atlas = self._fault_atlas
        names = [n for n in fault_atlas.files(node_id) if covered or not fault_atlas.is_deep(n)]
        return self._draw_file(names) if names else None

    def _lose_file(self, node_id: int, covered: bool) -> None:
        name = self._a_file(node_id, covered)
        if name is not None:
            self._injector.record(f"lost {node_id}: {name}")
            self._injector.host(node_id).platter.remove(name)

    def _cut_file(self, node_id: int, covered: bool) -> None:
        name = self._a_file(node_id, covered)
        if name is not None:
            platter = self._injector.host(node_id).platter
            size = self._dice.randrange(len(platter.names[name].content) + 1)
            self._injector.record(f"cut {node_id}: {name} to {size}")
            platter.cut(name, size)

    def _wipe(self, node_id: int, covered: bool) -> None:
        self._injector.host(node_id).platter.wipe()

    # -- files and folders from a back-up ------------------------------------------------------

    def _later(self, what: str, act: Callable[[int, dict[str, bytes]], None]) -> None:
        """Take a back-up now, and put it back some time later."""
        node_id = self._victim()
        if node_id is None:
            return
        files = self._injector.host(node_id).platter.snapshot()
        put = partial(self._put_back, what, node_id, partial(act, node_id, files), RETRIES)
        self._injector.for_a_while("back-up", node_id, put)

    def _put_back_saved(self, what: str, act: Callable[[int, dict[str, bytes]], None]) -> None:
        node_id = self._victim()
        files = None if node_id is None else self._saved.pop(node_id, None)
        if node_id is not None and files is not None and self._fault_atlas.is_covered(node_id):
            self._stop_and(what, node_id, lambda _n, _covered: act(node_id, files), covered=True)

    def _put_back(self, what: str, node_id: int, act: Callable[[], None], tries: int) -> None:
        swapped = self._swapped is not None and node_id in self._swapped
        if not self._injector.going or tries == 0:
            return
        if swapped or not self._fault_atlas.is_covered(node_id):
            again = partial(self._put_back, what, node_id, act, tries - 1)
            self._injector.world.schedule(RETRY_US, again, None, "damage")
            return
        self._injector.kind = what.replace(" ", "_")
        self._stop_and(what, node_id, lambda _node_id, _covered: act(), covered=True)

    def _put_back_file(self, node_id: int, files: dict[str, bytes]) -> None:
        platter = self._injector.host(node_id).platter
        now = self._fault_atlas.files(node_id)
        changed = [n for n in now if n in files and files[n] != platter.names[n].content]
        if changed:
            name = self._draw_file(changed)
            self._injector.record(f"old file {node_id}: {name}")
            platter.put(name, files[name])

    def _put_back_folder(self, node_id: int, files: dict[str, bytes]) -> None:
        self._injector.host(node_id).platter.restore(files)

    # -- folders of two nodes ------------------------------------------------------------------

    def _swap(self) -> None:
        """Start two nodes, each on the other's folder or journal. Both must refuse."""
        injector = self._injector
        nodes = [n for n in injector.nodes() if self._has_promised(n)]
        if len(nodes) < 2 or self._swapped is not None or not self._fault_atlas.open_to_damage():
            return
        pair = (one, other) = tuple(self._dice.sample(nodes, 2))
        injector.on(pair)
        self._swapped = (one, other)
        self._swap_hosts = self._dice.choice((_swap_folders, _swap_journals))
        self._fault_atlas.changed_hands(pair)
        for node_id in pair:
            injector.host(node_id).kill()
        self._swap_hosts(injector.host(one), injector.host(other))
        for node_id in pair:
            injector.start(node_id)
        injector.world.schedule(RETRY_US, partial(self._see_refused, self._swapped), None, "damage")
        injector.for_a_while("swapped folders", pair, partial(self._swap_back, self._swapped))

    def _has_promised(self, node_id: int) -> bool:
        """Tell whether the node has promised anything. Nobody can refuse an empty folder."""
        return any(map(self._fault_atlas.is_deep, self._fault_atlas.files(node_id)))

    def _see_refused(self, pair: tuple[int, int]) -> None:
        for node_id in pair:
            if self._swapped == pair and self._fault_atlas.has_begun(node_id):
                self._injector.world.fail("it runs on the folder of another node", node_id)

    def _swap_back(self, pair: tuple[int, int]) -> None:
        if self._swapped != pair:
            return
        injector = self._injector
        one, other = pair
        self._see_refused(pair)
        for node_id in pair:
            injector.host(node_id).kill()
        self._swap_hosts(injector.host(one), injector.host(other))
        self._swapped = None
        self._fault_atlas.changed_hands(())
        for node_id in pair:
            injector.start(node_id)


def _swap_folders(one: SimulatedHost, other: SimulatedHost) -> None:
    one.platter, other.platter = other.platter, one.platter


def _swap_journals(one: SimulatedHost, other: SimulatedHost) -> None:
    """Swap the journals of two folders. Each keeps its ledger and its manifest."""
    journals = [
        {name: data for name, data in host.platter.snapshot().items() if _is_of_journal(name)}
        for host in (one, other)
    ]
    for host, theirs in zip((other, one), journals, strict=True):
        for name in [name for name in host.platter.names if _is_of_journal(name)]:
            host.platter.remove(name)
        for name, data in theirs.items():
            host.platter.put(name, data)


def _is_of_journal(name: str) -> bool:
    return folder_of(name) == "journal"
