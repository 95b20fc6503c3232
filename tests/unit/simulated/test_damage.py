"""Damage hits only allowed places, is what its name says, and is repeated by its seed."""

import pytest

from runtime.simulated.fault_schedules import DAMAGE
from runtime.simulated.platter import Inode
from tests.unit.simulated.folders import DEEP, OWNER, SHALLOW, Folders, nemesis_of

Contents = dict[int, dict[str, bytes]]


def contents(cluster: Folders) -> Contents:
    return {n: host.platter.snapshot() for n, host in cluster.hosts.items()}


def changed(before: Contents, after: Contents) -> list[int]:
    """Who has not all that it had, at the beginning of its files."""
    return [
        n
        for n, files in before.items()
        if any(after[n].get(name, b"")[: len(data)] != data for name, data in files.items())
    ]


@pytest.mark.parametrize("kind", [k for k in DAMAGE if k not in {"read_error", "swapped_folders"}])
@pytest.mark.parametrize("seed", range(3))
def test_only_nodes_of_a_minority_are_damaged(kind: str, seed: int) -> None:
    cluster = Folders(seed)
    nemesis = nemesis_of(cluster, kind)
    hit: list[int] = []
    for _ in range(6):
        before = contents(cluster)
        nemesis.inject(kind)
        cluster.world.run_for(0.01)
        hit += changed(before, contents(cluster))
        before = contents(cluster)
        cluster.world.run_for(1)
        hit += changed(before, contents(cluster))
    assert set(hit) <= set(nemesis.victims)
    assert len(nemesis.victims) == 2
    assert hit or kind.startswith("old")
    assert set(cluster.forgetful) == set(nemesis.victims) & set(cluster.forgetful) != set()
    assert nemesis.counts[kind] >= 3
    nemesis.heal()
    assert all(host.running for host in cluster.hosts.values())


def test_a_single_node_and_a_pair_have_no_minority_to_damage() -> None:
    for size in (1, 2):
        cluster = Folders(1, size)
        nemesis = nemesis_of(cluster, "wiped_disk")
        nemesis.inject("wiped_disk")
        assert nemesis.victims == []
        assert not nemesis.counts


def test_nothing_is_damaged_before_everybody_has_found_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Folders(1)
    monkeypatch.setattr(cluster, "open_to_damage", lambda: False)
    for kind in DAMAGE:
        if kind != "read_error":
            nemesis = nemesis_of(cluster, kind)
            nemesis.inject(kind)
            assert not nemesis.counts


@pytest.mark.parametrize("kind", ["rot", "rot_at_rest", "misdirected_write"])
def test_damage_stays_below_the_byte_from_which_nobody_could_tell(kind: str) -> None:
    cluster = Folders(2)
    cluster.covered, cluster.bound = False, 40
    nemesis = nemesis_of(cluster, kind)
    before = contents(cluster)
    for _ in range(5):
        nemesis.inject(kind)
    cluster.world.run_for(0.001)
    after = contents(cluster)
    assert changed(before, after)
    for n in cluster.hosts:
        for name in (DEEP, SHALLOW):
            size = len(before[n][name])
            assert after[n][name][40:size] == before[n][name][40:]


@pytest.mark.parametrize("kind", ["lost_file", "cut_file"])
def test_what_a_node_promised_is_lost_only_where_others_have_it(kind: str) -> None:
    for covered in (True, False):
        cluster = Folders(3)
        cluster.covered = covered
        nemesis = nemesis_of(cluster, kind, 0.1)
        deep = 0
        for _ in range(12):
            before = contents(cluster)
            nemesis.inject(kind)
            after = contents(cluster)
            for n in cluster.hosts:
                deep += after[n].get(DEEP) != before[n].get(DEEP)
            cluster.world.run_for(0.3)
        assert bool(deep) is covered


@pytest.mark.parametrize("kind", ["old_folder", "old_file"])
def test_an_old_copy_comes_back_as_soon_as_others_hold_what_is_newer(kind: str) -> None:
    cluster = Folders(4)
    cluster.covered = False
    nemesis = nemesis_of(cluster, kind)
    (a, b) = nemesis.victims
    sizes = {n: len(cluster.hosts[n].platter.names[SHALLOW].content) for n in (a, b)}
    nemesis.inject(kind)
    cluster.world.run_for(0.6)
    assert not nemesis.counts
    cluster.covered = True
    cluster.world.run_for(0.1)
    assert nemesis.counts == {kind: 1}
    (node_id,) = cluster.forgetful
    files = cluster.hosts[node_id].platter.snapshot()
    back = [name for name in (DEEP, SHALLOW) if len(files[name]) <= sizes[node_id]]
    assert len(back) == (2 if kind == "old_folder" else 1)


def test_an_old_copy_is_given_up_when_nobody_holds_what_is_newer() -> None:
    cluster = Folders(4)
    cluster.covered = False
    nemesis = nemesis_of(cluster, "old_folder")
    nemesis.inject("old_folder")
    cluster.world.run_for(10)
    cluster.covered = True
    cluster.world.run_for(10)
    assert not cluster.forgetful


def test_a_wiped_disk_is_empty() -> None:
    cluster = Folders(5)
    nemesis = nemesis_of(cluster, "wiped_disk")
    nemesis.inject("wiped_disk")
    (node_id,) = cluster.forgetful
    assert cluster.hosts[node_id].platter.names == {}
    cluster.world.run_for(1)
    assert cluster.hosts[node_id].running


def test_swapped_folders_are_refused_and_go_back() -> None:
    cluster = Folders(6)
    nemesis = nemesis_of(cluster, "swapped_folders")
    nemesis.inject("swapped_folders")
    pair = sorted(cluster.refused)
    assert len(pair) == 2
    assert not any(cluster.hosts[n].running for n in pair)
    assert [bytes(cluster.hosts[n].platter.names[OWNER].content) for n in pair] == [
        b"%d" % n for n in reversed(pair)
    ]
    nemesis.inject("swapped_folders")
    assert nemesis.counts["swapped_folders"] == 1
    cluster.world.run_for(1)
    assert all(cluster.hosts[n].running for n in pair)
    cluster.refused.clear()
    nemesis.inject("swapped_folders")
    nemesis.heal()
    assert all(host.running for host in cluster.hosts.values())


def test_who_gets_its_folder_back_when_all_is_healed_meets_no_fault_any_more() -> None:
    """Damage seed 48: its start failed, and only its end came after everybody was started."""
    cluster = Folders(6)
    nemesis = nemesis_of(cluster, "swapped_folders")
    nemesis.inject("swapped_folders")
    for host in cluster.hosts.values():
        host.faults.fail("read")
        host.faults.capacity_bytes = 0
    nemesis.heal()
    cluster.world.run_for(1)
    assert cluster.failures == []
    assert all(host.running for host in cluster.hosts.values())


def test_a_node_that_takes_the_folder_of_another_fails_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Folders(7)
    nemesis = nemesis_of(cluster, "swapped_folders")
    for host in cluster.hosts.values():
        host.platter.remove(OWNER)
    nemesis.inject("swapped_folders")
    with pytest.raises(Exception, match="runs on the folder of another node"):
        cluster.world.run_for(1)


@pytest.mark.parametrize("kind", [k for k in DAMAGE if k != "read_error"])
def test_damage_is_repeated_by_its_seed(kind: str) -> None:
    def run(seed: int) -> tuple[list[str], Contents]:
        cluster = Folders(seed)
        nemesis = nemesis_of(cluster, kind, 0.2)
        for _ in range(3):
            nemesis.inject(kind)
            cluster.world.run_for(0.5)
        return nemesis.history, contents(cluster)

    assert run(8) == run(8)
    assert run(8) != run(9)


def test_a_misdirected_write_leaves_zeros_and_lands_elsewhere() -> None:
    cluster = Folders(10)
    nemesis = nemesis_of(cluster, "misdirected_write")
    for _ in range(8):
        nemesis.inject("misdirected_write")
    zeros = [
        name
        for n in nemesis.victims
        for name, data in cluster.hosts[n].platter.snapshot().items()
        if b"\0" in data
    ]
    assert zeros


def test_rot_survives_syncs_kills_and_losses_of_power() -> None:
    cluster = Folders(11)
    nemesis = nemesis_of(cluster, "rot")
    before = contents(cluster)
    nemesis.inject("rot")
    (node_id,) = cluster.forgetful
    cluster.world.run_for(0.5)
    cluster.hosts[node_id].lose_power()
    assert changed(before, contents(cluster)) == [node_id]


def test_bytes_change_wherever_they_stand() -> None:
    inode = Inode()
    inode.append(b"durable")
    inode.sync(inode.changes)
    inode.append(b"pending")
    inode.overwrite(5, b"XXXX")
    assert inode.content == b"durabXXXXnding"
    inode.sync(inode.changes)
    assert inode.durable == b"durabXXXXnding"
    inode.overwrite(12, b"YYYY")
    assert inode.content == inode.durable == b"durabXXXXndiYY"
