"""Harms checkpoints of a controller and the saved image of an agent, then loads them as at a start.

Rule: a checkpoint is loaded whole and right, or it is reported and put aside. For a controller
`load_checkpoint` does that, for an auditor `audit.reading.state_start`, and for an agent
`ImageStore.open`, which also checks whose folder it is.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from audit.reading.state_start import UnbelievableCheckpointError, image_of, load
from broker_agent.config import AgentConfig
from broker_agent.image_store import OWNER_FILE, SAVED_IMAGE_UNUSABLE, ImageStore, WrongFolderError
from broker_agent.view import PlacedImage
from controller.storage.checkpoint_loading import load_checkpoint
from controller.storage.snapshotting import checkpoint_header
from ledger.chain import LogMark
from ledger.ledger import Ledger
from metadata.codec import encode_record
from metadata.features import COLUMNS_FROM, LOGBERG_VERSION
from metadata.image import EMPTY, MetadataDelta, MetadataImage, image_to_records
from metadata.records import FeatureLevelRecord
from metadata.steps import finished
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World
from snapshots.checkpoint import FOLDER, CheckpointId, parse_header
from snapshots.errors import CheckpointNotFoundError, DamagedCheckpointError
from snapshots.store import CheckpointStore
from tests.flips.events import Events
from tests.flips.memory import Files, MemoryDisk
from tests.flips.verdicts import DETECTED, HARMLESS, SILENT, Verdict, unclean, worst
from tests.histories import History
from tests.unit.ledger.ledger_world import CLUSTER, Node

SAME = Verdict(HARMLESS, "the same is read")
BROKER = 3
_DAMAGED = "checkpoint_damaged"


Records = list[bytes]
Loaded = tuple[int, int, int, Records]
"""Offset, epoch, time, records."""


def _loaded(image: MetadataImage, *, for_brokers: bool = False) -> Loaded:
    records = map(encode_record, image_to_records(image, for_brokers=for_brokers))
    return image.offset, image.epoch, image.timestamp_ms, list(records)


class CheckpointCase:
    """A controller's two checkpoints, of which the newer one is harmed."""

    def __init__(self, file: str, files: Files, others: Files | None = None) -> None:
        self.file = file
        self.files = files
        older, newer = sorted(files)
        self.targets = [newer]
        self.others = others or {}
        self._clock = SimulatedProcess(World(0), 1).clock
        self._ledger = Ledger.open(MemoryDisk({}), CLUSTER, synced_to=None, log=Events().log)
        """It has not got as far as the checkpoints, so it can't object."""
        self._id = CheckpointId.parse(newer.removeprefix(f"{FOLDER}/"))
        self._older = self._read({older: files[older]}, Events())
        self._newer = self._read(files, Events())
        assert self._older != self._newer
        assert self.judge(files) == SAME

    def judge(self, harmed: Files, *, thorough: bool = False) -> Verdict:
        """Load as a controller does, then as an auditor."""
        return worst(
            [_cleanly(self._by_a_controller, harmed), _cleanly(self._by_an_auditor, harmed)]
        )

    def _by_a_controller(self, harmed: Files) -> Verdict:
        events = Events()
        read = self._read(harmed, events)
        if read == self._newer:
            return SAME
        if read != self._older:
            return Verdict(SILENT, "a controller loads another image")
        if _DAMAGED in events.names:
            return Verdict(DETECTED, "put aside, and the one before it loaded")
        if self.targets[0] not in harmed:
            return Verdict(HARMLESS, "the one before it is loaded, and the ledger behind that")
        return Verdict(SILENT, "passed over without a word")

    def _by_an_auditor(self, harmed: Files) -> Verdict:
        try:
            loaded = load(MemoryDisk(harmed), CLUSTER, self._id)
            image = image_of(loaded, check=True)
        except UnbelievableCheckpointError:
            return Verdict(DETECTED, "not believed")
        except CheckpointNotFoundError:
            return Verdict(HARMLESS, "not there")
        if _loaded(image) != self._newer:
            return Verdict(SILENT, "an auditor loads another image")
        return SAME

    def _read(self, files: Files, events: Events) -> Loaded | None:
        disk = MemoryDisk(files)
        store = CheckpointStore(disk, CLUSTER, self._clock, events.log)
        damaged = partial(_note_damaged, events)
        found = finished(load_checkpoint(disk, store, self._ledger, CLUSTER, damaged))
        return None if found is None else _loaded(found[0])


class AgentCase:
    """An agent's folder: its image, and whose it is."""

    def __init__(self, file: str, files: Files, others: Files | None = None) -> None:
        self.file = file
        self.files = files
        self.targets = list(files)
        self.others = others or {}
        self._world = World(0)
        self._clock = SimulatedProcess(self._world, 1).clock
        self._config = AgentConfig(cluster_id=CLUSTER, broker_id=BROKER, controllers=())
        self._whole = _placed(self._open(files, Events()))
        assert self._whole is not None
        assert self.judge(files) == SAME

    def judge(self, harmed: Files, *, thorough: bool = False) -> Verdict:
        """Open the folder as an agent does at its start."""
        return _cleanly(self._by_its_agent, harmed)

    def _by_its_agent(self, harmed: Files) -> Verdict:
        events = Events()
        try:
            placed = self._open(harmed, events)
        except WrongFolderError:
            return Verdict(DETECTED, "the folder is refused")
        if placed is not None:
            if _placed(placed) != self._whole:
                return Verdict(SILENT, "an agent loads another image")
            return SAME
        if SAVED_IMAGE_UNUSABLE in events.names:
            return Verdict(DETECTED, "removed, and fetched anew")
        if set(harmed) >= set(self.files):
            return Verdict(SILENT, "passed over without a word")
        return Verdict(HARMLESS, "there is none, so it is fetched")

    def _open(self, files: Files, events: Events) -> PlacedImage | None:
        store = ImageStore(self._config, self._clock, MemoryDisk(files), events.log)
        store.open()
        loaded: list[PlacedImage | None] = []
        store.load(loaded.append)
        self._world.run_for(60, lambda: bool(loaded))
        [placed] = loaded
        return placed


def _placed(placed: PlacedImage | None) -> tuple[LogMark, Loaded] | None:
    return None if placed is None else (placed.mark, _loaded(placed.image, for_brokers=True))


def _note_damaged(events: Events, _error: DamagedCheckpointError) -> None:
    events.names.append(_DAMAGED)


def _cleanly(way: Callable[[Files], Verdict], harmed: Files) -> Verdict:
    try:
        return way(harmed)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return unclean(error)


# -- files, as the product writes them -------------------------------------------------------------

SNAPSHOT_KINDS = 35


def images(seed: int, *sizes: int) -> list[MetadataImage]:
    """The images of a history after so many batches, or as soon as no transaction is open."""
    history, image, found = History(seed), EMPTY, list[MetadataImage]()
    for number in range(1, max(sizes) + 100):
        batch, delta = history.batch(), MetadataDelta(image)
        delta.replay_all(batch.records, batch.base_offset)
        delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
        image = delta.apply()
        if image.transaction is None and number >= sizes[len(found)]:
            found.append(image)
            if len(found) == len(sizes):
                return found
    raise AssertionError("a transaction that doesn't end")


def written_checkpoints_of(
    images: Sequence[MetadataImage], cluster_id: str = CLUSTER, version: int = 1
) -> dict[str, bytes]:
    """The checkpoints of these images, in a format."""
    node = Node(1, cluster_id)
    store = CheckpointStore(node.disk, cluster_id, node.process.clock, node.log)
    for image in images:
        header = checkpoint_header(cluster_id, image, bytes(range(32)))
        header = msgspec.structs.replace(header, format=version)
        outcome: list[object] = []
        store.write_image(header, image, partial(_note, outcome))
        node.settle()
        assert outcome == [CheckpointId(image.offset, image.epoch)]
    return node.files(FOLDER)


def _note(outcome: list[object], written: CheckpointId | None, _error: OSError | None) -> None:
    outcome.append(written)


def written_checkpoints(
    seed: int = 15, older: int = 5, newer: int = 90, version: int = 1
) -> CheckpointCase:
    """Two checkpoints of a controller; the newer one has records of all kinds but one."""
    found = images(seed, older, newer)
    kinds = {type(record) for record in image_to_records(found[-1])}
    assert newer != 90 or len(kinds) == SNAPSHOT_KINDS
    stranger = written_checkpoints_of(found, "another-cluster-000000", version)
    others = {f"another cluster's {name}": data for name, data in stranger.items()}
    return CheckpointCase("snapshot", written_checkpoints_of(found, version=version), others)


def checkpoints_in_columns() -> CheckpointCase:
    """The same two in format 2."""
    return written_checkpoints(version=2)


def saved_image_in_columns() -> AgentCase:
    """What an agent saves where the level is finalised."""
    return saved_image(COLUMNS_FROM)


def saved_image(level: int = 1, seed: int = 5, batches: int = 40) -> AgentCase:
    """What an agent saves at an orderly end, at a level of logberg.version."""
    (image,) = images(seed, batches)
    delta = MetadataDelta(image)
    delta.replay(FeatureLevelRecord(LOGBERG_VERSION, level), image.offset)
    delta.finish_batch(image.offset + 1, image.epoch, image.timestamp_ms)
    image = delta.apply()
    node = Node(1)
    config = AgentConfig(cluster_id=CLUSTER, broker_id=BROKER, controllers=())
    store = ImageStore(config, node.process.clock, node.disk, node.log)
    store.open()
    mark = LogMark(image.offset, bytes(range(32)), image.epoch, image.timestamp_ms)
    done: list[bool] = []
    store.save_at_end(PlacedImage(image, mark), lambda: done.append(True))
    node.settle()
    assert done
    [saved] = node.files(FOLDER).values()
    assert parse_header(saved)[0].format == (2 if level >= COLUMNS_FROM else 1)
    files = {**node.files(FOLDER), OWNER_FILE: node.disk.read(OWNER_FILE)}
    return AgentCase("agent-image", files)
