"""The expected failures of a starting node: they print one sentence instead of a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

from broker_agent.head_file import HeadFileError
from broker_agent.image_store import WrongFolderError as AgentsWrongFolderError
from ledger.errors import LedgerError
from logberg.cli.failure import Failure
from logberg.processes.settings.settings_files import SettingsError
from quorum.journal.damage import DamagedError, WrongFolderError
from runtime.disk.interface import FolderInUseError
from runtime.http.exposure import InsecureListenerError
from runtime.sockets.tls import TlsFilesError


@contextmanager
def expected_failures() -> Iterator[None]:
    """Turn the expected errors of a start into `Failure`."""
    try:
        yield
    except (
        SettingsError,
        FolderInUseError,
        InsecureListenerError,
        TlsFilesError,
        DamagedError,
        WrongFolderError,
        AgentsWrongFolderError,
        HeadFileError,
        LedgerError,
        OSError,
    ) as error:
        raise Failure(str(error)) from None
