"""Trees of keys are sealed away from the loop, and once for the disk and all who ask."""

import structlog

from controller.erasure.key_files import KeyFiles
from metadata.sealed_places import opened_tree
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys

KEYS = SubjectKeys.of_root(bytes(32))


class LaterDisk:
    """Files in memory; work in the background waits until the test runs it."""

    def __init__(self):
        self.files = {}
        self.waiting = []

    def in_background(self, work, on_done):
        self.waiting.append((work, on_done))

    def replace(self, name, data):
        self.files[name] = data

    def make_folder(self, name):
        pass

    def list(self, folder):
        return [name.removeprefix(f"{folder}/") for name in self.files]

    def read(self, name):
        return self.files[name]


def made(disk):
    drawn = iter(range(1, 100))
    return KeyFiles(
        disk, ClusterKey(bytes(32)), lambda n: bytes([next(drawn)]) * n, structlog.get_logger()
    )


def written(files, disk):
    files.write(KEYS, lambda error: None)
    work, on_done = disk.waiting.pop()
    on_done(work(), None)


def test_a_tree_is_sealed_in_the_background(monkeypatch):
    disk, encoded = LaterDisk(), []
    encode = SubjectKeys.encode
    monkeypatch.setattr(SubjectKeys, "encode", lambda keys: encoded.append(keys) or encode(keys))
    files = made(disk)
    files.write(KEYS, lambda _error: None)
    assert encoded == []
    work, on_done = disk.waiting.pop()
    on_done(work(), None)
    assert [files.sealed(KEYS), files.sealed(KEYS)] == [*disk.files.values()] * 2
    assert encoded == [KEYS], "once for the disk and for who asks"


def test_a_tree_with_less_is_sealed_anew():
    disk = LaterDisk()
    files = made(disk)
    written(files, disk)
    less = KEYS.without([bytes(8)])
    sealed = files.sealed(less)
    assert opened_tree(ClusterKey(bytes(32)), KEYS.id.hex(), sealed) == less
    assert files.sealed(less) is sealed


def test_what_was_read_is_not_sealed_again():
    disk = LaterDisk()
    written(made(disk), disk)
    files = made(disk)
    [keys] = files.load().values()
    assert [files.sealed(keys)] == [*disk.files.values()]
