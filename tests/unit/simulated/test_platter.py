"""What a loss of power leaves: properties, for any sequence of changes."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from runtime.simulated.platter import SECTOR, Inode, Platter

Change = tuple[str, int]
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 1500)),
        st.tuples(st.just("cut"), st.integers(0, 100)),
        st.tuples(st.just("sync"), st.just(0)),
    ),
    max_size=12,
)


class Twin:
    """An inode, and beside it what must hold."""

    def __init__(self, changes: list[Change]) -> None:
        self.inode = Inode()
        self.safe = b""
        """What was there at the last sync, as far as no later cut took it away."""
        self.at_sync = b""
        letters = Random(0)
        for what, amount in changes:
            if what == "append":
                self.inode.append(bytes(letters.randrange(1, 255) for _ in range(amount)))
            elif what == "cut":
                size = len(self.inode.content) * amount // 100
                self.inode.truncate(size)
                self.safe = self.safe[:size]
            else:
                self.inode.sync(self.inode.changes)
                self.safe = self.at_sync = bytes(self.inode.content)


@given(CHANGES, st.integers(0, 1 << 32))
def test_what_was_synced_survives_and_the_rest_is_a_mix_of_sectors(
    changes: list[Change], seed: int
) -> None:
    twin = Twin(changes)
    written = bytes(twin.inode.content)
    twin.inode.lose_power(Random(seed))
    left = bytes(twin.inode.content)
    assert left == bytes(twin.inode.durable)
    assert left[: len(twin.safe)] == twin.safe
    longest = max(len(written), len(twin.at_sync), _longest(changes))
    assert len(twin.safe) <= len(left) <= longest
    strange = 0
    for start in range(len(twin.safe) // SECTOR * SECTOR, len(left), SECTOR):
        lo, hi = max(start, len(twin.safe)), min(start + SECTOR, len(left))
        kept, old = _piece(written, lo, hi), _piece(twin.at_sync, lo, hi)
        tail_old = written[lo:hi] + old[len(written[lo:hi]) :]
        prefix = left[lo:hi].rstrip(b"\0")
        strange += left[lo:hi] not in {kept, old, tail_old} and not kept.startswith(prefix)
    # Those are the garbled ones; only unsynced bytes of the file as written can be garbled.
    assert strange <= (len(written) - len(twin.safe)) // SECTOR + 2


@given(CHANGES, st.integers(0, 1 << 32))
def test_a_file_that_is_synced_loses_nothing(changes: list[Change], seed: int) -> None:
    twin = Twin([*changes, ("sync", 0)])
    written = bytes(twin.inode.content)
    assert twin.inode.synced
    twin.inode.lose_power(Random(seed))
    assert bytes(twin.inode.content) == written


@given(CHANGES, CHANGES, st.integers(0, 1 << 32))
def test_a_sync_covers_the_changes_before_it(
    before: list[Change], after: list[Change], seed: int
) -> None:
    inode = Twin(before).inode
    upto = inode.changes
    content = bytes(inode.content)
    appends = [amount for what, amount in after if what == "append"]
    for amount in appends:
        inode.append(b"z" * amount)
    inode.sync(upto)
    assert bytes(inode.durable) == content
    inode.lose_power(Random(seed))
    assert bytes(inode.content).startswith(content)


@given(CHANGES)
def test_a_kill_loses_nothing(changes: list[Change]) -> None:
    inode = Twin(changes).inode
    content = bytes(inode.content)
    inode.forget_cache()
    assert bytes(inode.content) == content


def test_every_kind_of_salvage_occurs() -> None:
    kinds = {"all": 0, "none": 0, "prefix": 0, "hole": 0, "garbled": 0, "zero tail": 0}
    for seed in range(400):
        inode = Inode()
        inode.append(b"s" * 100)
        inode.sync(inode.changes)
        inode.append(b"n" * 4000)
        inode.lose_power(Random(seed))
        left = bytes(inode.content)
        assert left.startswith(b"s" * 100)
        tail = left[100:]
        kinds["all"] += tail == b"n" * 4000
        kinds["none"] += tail == b""
        kinds["prefix"] += 0 < len(tail) < 4000 and tail == b"n" * len(tail)
        kinds["hole"] += b"\0n" in tail
        kinds["garbled"] += bool(set(tail) - set(b"\0n"))
        kinds["zero tail"] += tail.endswith(b"\0")
    assert min(kinds.values()) > 5, kinds


NAMES = st.sampled_from(["a", "b", "x/a", "x/b"])
NAME_CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES, NAMES),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("unlink"), NAMES, NAMES),
        st.tuples(st.just("sync"), st.sampled_from(["", "x"]), NAMES),
    ),
    max_size=15,
)


def _change(platter: Platter, what: str, one: str, other: str) -> None:
    if what == "create" and one not in platter.names:
        platter.create(one)
    elif what == "rename" and one in platter.names and one != other:
        platter.rename(one, other)
    elif what == "unlink" and one in platter.names:
        platter.unlink(one)
    elif what == "sync":
        platter.sync_folder(one)


@given(NAME_CHANGES, st.integers(0, 1 << 32))
def test_names_are_as_they_were_once_both_folders_are_synced(
    changes: list[tuple[str, str, str]], seed: int
) -> None:
    platter = Platter(Random(seed))
    platter.add_folder("x")
    for change in changes:
        _change(platter, *change)
    folders = ["", "x"]
    Random(seed).shuffle(folders)
    for folder in folders:
        platter.sync_folder(folder)
    names = dict(platter.names)
    platter.lose_power()
    assert platter.names == names


@given(NAME_CHANGES, st.integers(0, 1 << 32))
def test_a_loss_of_power_brings_no_name_that_never_was(
    changes: list[tuple[str, str, str]], seed: int
) -> None:
    platter = Platter(Random(seed))
    platter.add_folder("x")
    ever: dict[str, list[int]] = {}
    for change in changes:
        _change(platter, *change)
        for name, inode in platter.names.items():
            ever.setdefault(name, []).append(id(inode))
    platter.lose_power()
    assert all(id(inode) in ever[name] for name, inode in platter.names.items())


@given(NAME_CHANGES, NAME_CHANGES, st.integers(0, 1 << 32))
def test_a_durable_file_that_nobody_removed_is_found_under_some_name(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]], seed: int
) -> None:
    platter = Platter(Random(seed))
    platter.add_folder("x")
    for change in [*before, ("sync", "", ""), ("sync", "x", "")]:
        _change(platter, *change)
    durable = list(platter.names.values())
    used = list(platter.names)
    for what, one, other in after:
        new = {"create": one, "rename": other}.get(what)
        if new in used:
            continue  # a name that is used again may cost the file that is on its way elsewhere
        _change(platter, what, one, other)
        used.extend(platter.names)
        durable = [inode for inode in durable if inode in platter.names.values()]
    platter.lose_power()
    assert all(inode in platter.names.values() for inode in durable)


def _longest(changes: list[Change]) -> int:
    length = longest = 0
    for what, amount in changes:
        length = length + amount if what == "append" else length
        length = length * amount // 100 if what == "cut" else length
        longest = max(longest, length)
    return longest


def _piece(data: bytes, start: int, end: int) -> bytes:
    return data[start:end].ljust(end - start, b"\0")
