"""The option `--cluster-key` of commands that show sealed addresses and names in clear.

Rule: the keys of subjects are those in the folder that is read. A controller destroys erased ones
there, so the folder of a running controller opens nothing that is erased. What ties names to
pseudonyms is the state at the log's end.
"""

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Final

import click

from audit.console.log_source import FileSource
from audit.places.replicas import Replica
from audit.questions.state import state_at
from ledger.errors import LedgerError
from ledger.reader import LedgerReader
from logberg.cli.failure import Failure
from logberg.cli.output import note
from logberg.client.cluster_key_file import read_cluster_key, with_fetched_keys, with_subject_keys
from logberg.client.followed_log import FollowedLog
from logberg.commands.audit.failures import EXPECTED
from logberg.commands.audit.local_paths import LocalPath
from metadata.image.erasures import EMPTY_ERASURES, ErasuresImage
from metadata.person_opener import NO_OPENER, PersonOpener
from metadata.sealed_blocks import SealingError
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeysError
from runtime.disk.secret_file import SecretFileError

cluster_key_option: Final = click.option(
    "--cluster-key",
    type=LocalPath(),
    metavar="FILE",
    help="Show sealed addresses and the names behind pseudonyms: the cluster key, if WHERE is a "
    "controller's data folder.",
)
_AGAIN_S: Final = 1.0


def opener_of(path: Path | None, replica: Replica) -> PersonOpener:
    """Return what opens addresses and names; without a key it opens nothing. Raises Failure."""
    if path is None:
        return NO_OPENER
    try:
        key = with_subject_keys(read_cluster_key(path), replica.disk)
    except (SecretFileError, OSError) as error:
        raise Failure(f"--cluster-key: {error}") from None
    if key.subjects.keys is None:
        raise Failure(
            f"--cluster-key: {replica.location} has no keys of subjects that this key opens: name "
            "the data folder of a controller, and the cluster key of its cluster"
        )
    return PersonOpener(key, EndOfLog(replica).erasures)


class EndOfLog:
    """The state at the end of a log, read only when somebody asks for it."""

    def __init__(self, replica: Replica, reader: LedgerReader | None = None) -> None:
        """`reader` has read the log up to its end; None: the log is opened when it is needed."""
        self._replica = replica
        self._reader = reader
        self._erasures: ErasuresImage | None = None

    def erasures(self) -> ErasuresImage:
        """Return the erasures and pseudonyms. If the log can't be read, a note says so."""
        if self._erasures is None:
            try:
                reader = self._reader or self._replica.reader()
                end = state_at(self._replica, reader.log_end, reader=reader, with_hash=False)
                self._erasures = end.image.erasures
            except EXPECTED as error:
                note(f"no name is shown, since the end of the log can't be read: {error}")
                self._erasures = EMPTY_ERASURES
        return self._erasures


class KeysInUse:
    """The keys of subjects that a log's place has now, for a process that runs on.

    They are read again after a second. So what is erased there is not opened here any more. As long
    as they are the same, the opener is, and keeps what it has opened.
    """

    def __init__(self, load: Callable[[], ClusterKey], now: Callable[[], float]) -> None:
        """`load` reads the keys. `now`: seconds of a clock that never goes back."""
        self._load = load
        self._now = now
        self._due = -1e9
        self._opener = NO_OPENER
        self._tree: bytes | None = None
        self._lock = Lock()

    def opener(self) -> PersonOpener:
        """Return what opens addresses now; without keys it opens nothing. For any thread."""
        with self._lock:
            if self._now() >= self._due:
                try:
                    self._opener = self._opener_with(self._load())
                except (OSError, LedgerError, SealingError, SubjectKeysError):
                    self._opener = NO_OPENER
                self._due = self._now() + _AGAIN_S
            return self._opener

    def _opener_with(self, key: ClusterKey) -> PersonOpener:
        tree = None if key.subjects.keys is None else key.subjects.keys.encode()
        if self._opener is NO_OPENER or tree is None or tree != self._tree:
            self._tree = tree
            return PersonOpener(key)
        return self._opener


def keys_in_use(
    path: Path, source: FileSource | FollowedLog, now: Callable[[], float]
) -> KeysInUse:
    """Return the keys of a log's place. Raises Failure for a file that holds no cluster key."""
    try:
        key = read_cluster_key(path)
    except (SecretFileError, OSError) as error:
        raise Failure(f"--cluster-key: {error}") from None
    if isinstance(source, FileSource):
        return KeysInUse(lambda: with_subject_keys(key, source.replica.disk), now)
    return KeysInUse(lambda: with_fetched_keys(key, source.subject_keys()), now)


def not_judged(batches: int) -> list[str]:
    """Return the note about batches whose address stayed sealed; nothing if there are none."""
    if not batches:
        return []
    note = (
        f"the addresses of {batches} batches are sealed: rules did not judge from where they came. "
        "With --cluster-key they do, as far as nobody erased the addresses"
    )
    return [note]
