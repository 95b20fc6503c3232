"""Which tree of subjects' keys counts, who holds it, and what of it is destroyed.

The leader of a log that names no tree draws one, or offers one that it has. The others fetch it,
sealed, and say when it is durable. Once a majority holds it, the leader names it in the log
(`SubjectKeysRecord`). So a tree that the log names can't be lost with one disk. A controller that
lacks the named tree asks the others for it, one after another, until it has it.

Rules:

- What the log says is erased is destroyed in memory when the record is applied, and on disk at
  once after that. Before it is destroyed, `on_progress` of everything else has seen the record.
- A controller uses no key after its start before its image has once been surely current. A key that
  was destroyed elsewhere while it was away is destroyed here before it could be used.
- While the log names no tree, each leader offers its own. A controller takes offers only from the
  leader that it knows, and holds several trees rather than losing one that the log may name.
"""

from collections.abc import Callable
from operator import is_
from typing import Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from controller.erasure.key_files import KeyFiles
from controller.erasure.messages import KeysTold, Telling, read_told
from controller.leader.decisions import Decision, Outcome
from controller.leader.proposer import Proposer
from controller.managers.sealing_key import may_have_keys
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.image import MetadataImage
from metadata.records import SubjectKeysRecord
from metadata.sealing import ClusterKey
from metadata.subject_keys import SECRET_BYTES, SubjectKeys
from quorum.api import Quorum
from runtime.clock import Clock, Timer
from runtime.disk.errors import BROKEN, sentence

OPERATION: Final = "NameSubjectKeys"
_LOOK_S: Final = 0.25
"""Time between two looks while something is missing: the tree, a majority, or a current image."""

_AGAIN_S: Final = 2.0
"""Pause after a tree could not be written."""


class ErasureState(NamedTuple):
    """How far this controller is."""

    keys_id: bytes | None
    """Of the tree that the log names; None: it names none."""
    held: bool
    """The tree is here, durably."""
    usable: bool
    """Values can be sealed and opened here."""
    erasures: int
    """How many erasures this controller's image has."""
    destroyed: int
    """How many of them are destroyed here, durably."""


class SubjectKeysKeeping:
    """One controller's part in keeping the keys of subjects."""

    def __init__(
        self,
        clock: Clock,
        node_id: int,
        quorum: Quorum,
        proposer: Proposer,
        provenance: Callable[[str], Provenance],
        key: ClusterKey,
        files: KeyFiles,
        draw: Callable[[int], bytes],
        image: Callable[[], MetadataImage],
        leads: Callable[[], bool],
        is_current: Callable[[], bool],
        on_usable: Callable[[], None],
        on_failed: Callable[[str], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`draw` returns random bytes of the system. `image` returns the committed image.

        `leads`: this controller is active. `is_current`: the image has been surely current since
        the start. `on_usable` is called when keys can be used from now on. `on_failed` stops the
        node.
        """
        self._clock = clock
        self._node_id = node_id
        self._quorum = quorum
        self._proposer = proposer
        self._provenance = provenance
        self._key = key
        self._files = files
        self._draw = draw
        self._image = image
        self._leads = leads
        self._is_current = is_current
        self._on_usable = on_usable
        self._on_failed = on_failed
        self._log = log
        self._trees: dict[bytes, SubjectKeys] = {}
        """What is here, by id."""
        self._durable: dict[bytes, SubjectKeys] = {}
        """What is on disk of them."""
        self._destroyed: set[str] = set()
        """The erasures that were looked at; see `ErasuresImage.erased`."""
        self._seen: tuple[object, ...] | None = None
        self._writing = False
        self._fetching = False
        self._asked = 0
        """How many fetches were begun: each asks the next peer."""
        self._kept_only: bytes | None = None
        self._offered: bytes | None = None
        self._holders: set[int] = set()
        self._naming = False
        self._timer: Timer | None = None
        self._stopped = False
        self._begun = False

    def start(self) -> None:
        """Read what is in the folder. Raises OSError."""
        self._trees = self._files.load()
        self._durable = dict(self._trees)

    def stop(self) -> None:
        """Use no key any more."""
        self._stopped = True
        self._key.subjects.keys = None
        if self._timer is not None:
            self._timer.cancel()

    @property
    def state(self) -> ErasureState:
        """How far this controller is."""
        image = self._image()
        named = image.quorum.subject_keys_id
        held = self._durable.get(named) if named is not None else None
        behind = held is None or held != self._trees.get(held.id)
        return ErasureState(
            named,
            held is not None,
            self._key.subjects.keys is not None,
            len(image.erasures.erased),
            0 if behind else len(self._destroyed),
        )

    @property
    def awaited(self) -> bool:
        """Values shall be sealed under keys of subjects, and can't be yet."""
        return self._key.subjects.awaited

    def sealed_tree(self) -> bytes | None:
        """Return the tree, sealed under the cluster key, for a broker that has that; None: none."""
        keys = self._key.subjects.keys
        return None if keys is None else self._files.sealed(keys)

    # -- events -------------------------------------------------------------------------------

    def on_loaded(self) -> None:
        """An image was loaded: at a start, or after a catch-up."""
        self._begun = True
        self._destroyed.clear()
        self._seen = None
        self.look()

    def begin(self) -> None:
        """This controller was elected."""
        self._offered, self._naming = None, False
        self._holders = set()
        self._seen = None
        self.look()

    def on_told(self, node_id: int, data: bytes) -> None:
        """A voter told something about a tree."""
        told = read_told(data)
        if told is None or self._stopped or not self._begun:
            return
        if told.telling is Telling.HELD:
            if self._leads() and told.keys_id == self._offered:
                self._holders.add(node_id)
                self._name_if_held()
        elif node_id == self._quorum.leader_and_epoch().leader and not self._leads():
            self._take_offer(node_id, told.keys_id)

    def look(self) -> None:
        """The committed image may have changed, or what was missing may be here."""
        if self._stopped or not self._begun:
            return
        image = self._image()
        seen = (image.quorum, image.erasures, image.features)
        if self._seen is not None and all(map(is_, seen, self._seen)):
            return
        self._seen = seen
        self._act(image)

    def _act(self, image: MetadataImage) -> None:
        named = image.quorum.subject_keys_id
        if image.quorum.cluster_key_id not in (None, self._key.id):
            # This controller has a wrong cluster key: it could open no tree.
            self._key.subjects.keys, self._key.subjects.awaited = None, False
            return
        if named is None:
            self._key.subjects.keys = None
            if self._leads() and may_have_keys(image, self._key):
                self._offer()
        elif named not in self._trees:
            self._key.subjects.keys = None
            self._fetch_named(named)
        else:
            self._destroy(image, named)
            if self._is_current():
                first = self._key.subjects.keys is None
                self._key.subjects.keys, self._key.subjects.awaited = self._trees[named], False
                if first:
                    self._on_usable()
            if self._kept_only != named and named in self._durable:
                self._kept_only = named
                self._files.keep_only(named)
        self._key.subjects.awaited = may_have_keys(image, self._key) and not self._usable(image)
        if self._key.subjects.awaited:
            self._look_later()

    def _usable(self, image: MetadataImage) -> bool:
        keys = self._key.subjects.keys
        return keys is not None and keys.id == image.quorum.subject_keys_id

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = self._clock.call_later(_LOOK_S, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._seen = None
        self.look()

    # -- destroying ---------------------------------------------------------------------------

    def _destroy(self, image: MetadataImage, named: bytes) -> None:
        """Destroy what the image says is erased: in memory now, on disk at once after that."""
        erased = image.erasures.erased
        if len(erased) == len(self._destroyed):
            return
        new = {key: record for key, record in erased.items() if key not in self._destroyed}
        numbers = [number for record in new.values() for number in record.numbers]
        before = self._trees[named]
        after = before.without(numbers)
        self._destroyed |= set(new)
        if after == before:
            return
        self._trees[named] = after
        if self._key.subjects.keys is not None:
            self._key.subjects.keys = after
        self._write()

    def _write(self) -> None:
        """Write what is not on disk as it is here."""
        waiting = [keys for keys in self._trees.values() if self._durable.get(keys.id) != keys]
        if self._writing or not waiting or self._stopped:
            return
        self._writing = True
        keys = waiting[0]

        def done(error: OSError | None) -> None:
            self._writing = False
            if self._stopped:
                return
            if error is None:
                self._durable[keys.id] = keys
                self._log.info("subject_keys_written", keys=keys.id.hex())
                self._after_write(keys)
                self._write()
            elif error.errno in BROKEN:
                self._on_failed(sentence(error, "writing the keys of subjects"))
            else:
                self._log.error("subject_keys_not_written", why=str(error))
                self._clock.call_later(_AGAIN_S, self._write)

        self._files.write(keys, done)

    def _after_write(self, keys: SubjectKeys) -> None:
        if self._leads() and keys.id == self._offered:
            self._holders.add(self._node_id)
            self._tell(Telling.OFFERED, keys.id)
            self._name_if_held()
        elif self._image().quorum.subject_keys_id is None:
            self._tell(Telling.HELD, keys.id)
        else:
            self._seen = None
            self.look()

    # -- sharing ------------------------------------------------------------------------------

    def _offer(self) -> None:
        """Ask who holds the tree that shall count; draw one, if there is none here."""
        if not self._trees:
            keys = SubjectKeys.of_root(self._draw(SECRET_BYTES))
            self._trees[keys.id] = keys
        offered = min(self._trees)
        if self._offered != offered:
            self._offered, self._holders = offered, set()
        if offered in self._durable:
            self._holders.add(self._node_id)
            self._tell(Telling.OFFERED, offered)
            self._name_if_held()
        else:
            self._write()

    def _take_offer(self, node_id: int, keys_id: bytes) -> None:
        if self._image().quorum.subject_keys_id is not None:
            return
        if keys_id in self._durable:
            self._tell(Telling.HELD, keys_id)
        elif keys_id not in self._trees:
            self._fetch(node_id, keys_id)

    def _tell(self, telling: Telling, keys_id: bytes) -> None:
        self._quorum.tell(KeysTold(telling, keys_id).encode())

    def _name_if_held(self) -> None:
        """Name the offered tree in the log, once a majority of the voters holds it."""
        offered = self._offered
        voters = {voter.node_id for voter in self._quorum.voters()}
        if offered is None or self._naming or 2 * len(self._holders & voters) <= len(voters):
            return
        self._naming = True

        def decide(image: MetadataImage) -> ControllerResult:
            if image.quorum.subject_keys_id is not None or not may_have_keys(image, self._key):
                return ControllerResult(())
            return ControllerResult((SubjectKeysRecord(offered, self._key.id),))

        def done(_outcome: Outcome) -> None:
            self._naming = False

        self._proposer.submit(Decision(decide, self._provenance(OPERATION), done, first=True))

    def _fetch_named(self, named: bytes) -> None:
        """Ask the next peer for the tree that the log names."""
        peers = sorted({voter.node_id for voter in self._quorum.voters()} - {self._node_id})
        leader = self._quorum.leader_and_epoch().leader
        if leader in peers:
            peers = [leader, *(peer for peer in peers if peer != leader)]
        if peers:
            self._fetch(peers[self._asked % len(peers)], named)

    def _fetch(self, node_id: int, keys_id: bytes) -> None:
        if self._fetching:
            return
        self._fetching = True
        self._asked += 1

        def fetched(keys: SubjectKeys | None) -> None:
            self._fetching = False
            if keys is None or self._stopped or keys.id in self._trees:
                return
            erased = self._image().erasures.erased.values()
            numbers = [number for record in erased for number in record.numbers]
            self._trees[keys.id] = keys.without(numbers)
            self._write()

        self._files.fetch(self._quorum, node_id, keys_id, fetched)
