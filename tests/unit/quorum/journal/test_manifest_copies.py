"""Two copies of the manifest: either alone is enough, and neither brings back an old state."""

import errno

import pytest

from quorum.journal import DamagedError, WrongFolderError
from quorum.journal.manifest import FILE, JournalManifest, decode_manifest, encode_manifest
from quorum.journal.manifest_copies import COPY
from quorum.journal.manifest_store import ManifestStore
from tests.unit.quorum.journal.rig import Rig, fill, manifest_at
from tests.unit.quorum.journal.test_manifest import manifest, sealed, serializer

BOTH = (FILE, COPY)


def written(*indexes: int) -> tuple[Rig, ManifestStore]:
    rig = Rig()
    store = rig.store()
    for index in indexes:
        store.offer(manifest(index), lambda _: None)
        rig.settle()
    return rig, store


def harm(rig: Rig, name: str, how: str) -> None:
    if how == "missing":
        rig.platter.remove(name)
    elif how == "cut":
        rig.platter.cut(name, 5)
    elif how == "empty":
        rig.platter.cut(name, 0)
    else:
        rig.platter.flip_bit(name, 40)


@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "missing"])
@pytest.mark.parametrize("name", BOTH)
def test_either_copy_alone_is_enough_and_puts_the_other_right(name: str, how: str) -> None:
    rig, _ = written(20, 30)
    harm(rig, name, how)
    again = rig.store()
    assert again.load() == manifest(30)
    assert bool(again.restored) == (name == FILE or how != "missing")
    rig.lose_power()
    assert {decode_manifest(rig.files()[name]) for name in BOTH} == {manifest(30)}
    assert (name + ".damaged" in rig.files()) == (how != "missing")
    third = rig.store()
    assert third.load() == manifest(30)
    assert third.restored == ()


def test_with_both_damaged_it_is_refused_with_what_to_do() -> None:
    rig, _ = written(20)
    for name in BOTH:
        harm(rig, name, "flipped")
    with pytest.raises(DamagedError, match=r"the file manifest is damaged.*Restore it, or move"):
        rig.store().load()
    rig.platter.remove(FILE)
    with pytest.raises(DamagedError, match=r"the file manifest\.copy is damaged"):
        rig.store().load()


def test_a_folder_of_0_1_has_no_copy_and_gets_one_without_a_word() -> None:
    rig, _ = written(20)
    rig.platter.remove(COPY)
    store = rig.store()
    assert store.load() == manifest(20)
    assert store.restored == ()
    assert decode_manifest(rig.files()[COPY]) == manifest(20)


@pytest.mark.parametrize("power", [True, False])
@pytest.mark.parametrize("at", range(1, 13))
def test_whichever_is_lost_after_a_crash_in_the_midst_of_a_write_the_other_one_fits(
    at: int, power: bool
) -> None:
    for lost in BOTH:
        rig, store = written(20)
        core = serializer(store)
        core.checkSerializing()
        store.offer(manifest(30), lambda _: None)
        rig.settle(at * 0.0002)
        reported = core.checkSerializing()[1]
        rig.lose_power() if power else rig.kill()
        first = rig.store().load()
        # What the core was told to forget entries for is durable twice.
        assert first in (manifest(20), manifest(30))
        assert reported is None or first == manifest(30)
        harm(rig, lost, "flipped")
        assert rig.store().load() == first


def test_the_core_is_told_only_when_both_are_durable() -> None:
    rig, store = written(20)
    core = serializer(store)
    core.checkSerializing()
    rig.faults.fail("rename", skip=1, error=errno.EIO)
    store.offer(manifest(30), lambda _: None)
    rig.settle()
    assert rig.failures
    assert core.checkSerializing()[1] is None


def test_a_primary_that_was_put_back_is_not_believed() -> None:
    rig, store = written(20)
    old = rig.files()[FILE]
    store.offer(manifest(30), lambda _: None)
    rig.settle()
    rig.platter.put(FILE, old)
    again = rig.store()
    assert again.load() == manifest(30)
    assert "older than the other" in again.restored[0]


def test_a_copy_of_another_folder_is_not_believed_and_written_over() -> None:
    rig, _ = written(20)
    rig.platter.put(COPY, encode_manifest(manifest(90, directory_id=b"o" * 16)))
    assert rig.store().load() == manifest(20)
    assert decode_manifest(rig.files()[COPY]) == manifest(20)


@pytest.mark.parametrize("name", BOTH)
def test_what_a_later_release_wrote_is_never_replaced(name: str) -> None:
    rig, _ = written(20)
    later = sealed([2, "more"])
    rig.platter.put(name, later)
    with pytest.raises(DamagedError, match="has format 2, this release reads 1"):
        rig.store().load()
    assert rig.files()[name] == later


def cut_twice() -> tuple[Rig, JournalManifest, JournalManifest]:
    """A journal that was cut at 10 and then at 25, and both manifests."""
    rig = Rig(segment_bytes=400)
    journal, store = rig.open(), rig.store()
    fill(journal, 1, 30)
    journal.set_term(1, "2@dir")
    journal.sync()
    rig.settle()
    found = []
    for index in (10, 25):
        found.append(manifest_at(journal, index))
        store.offer(found[-1], lambda _: None)
        rig.settle()
        journal.delete_before(index - 1 - journal.first_index)
        journal.sync()
        rig.settle()
    rig.stop(journal)
    return rig, found[0], found[1]


@pytest.mark.parametrize("name", BOTH)
def test_a_whole_journal_survives_the_loss_of_one_copy(name: str) -> None:
    rig, _, newest = cut_twice()
    before = rig.with_files(rig.files()).open(newest)
    harm(rig, name, "flipped")
    journal = rig.open(rig.store().load())
    assert not journal.damage
    assert journal[:] == before[:]
    assert journal.voted_for == "2@dir"


def test_an_older_copy_brings_back_no_old_state_and_no_vote() -> None:
    rig, older, _ = cut_twice()
    rig.platter.put(COPY, encode_manifest(older))
    harm(rig, FILE, "missing")
    journal = rig.open(rig.store().load())
    assert "entries before 24 are missing" in journal.damage
    assert journal.voted_for == "unknown"


def test_a_manifest_beside_another_folders_journal_is_refused_with_both_ids() -> None:
    rig, _, newest = cut_twice()
    ours, theirs = newest.directory_id.hex(), (b"o" * 16).hex()
    for name in BOTH:
        other = manifest(25, directory_id=b"o" * 16)
        rig.platter.put(name, encode_manifest(other))
    with pytest.raises(WrongFolderError, match=f"{theirs}.*{ours}"):
        rig.open(rig.store().load())
