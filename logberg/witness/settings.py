"""Settings of a witness: what its file may say, its key, and the logs that it knows.

Rule: everything is checked before the witness listens, and each problem names the key and what to
write instead. The key is drawn at the first start and is never overwritten or sent anywhere.
"""

from pathlib import Path
from secrets import token_bytes
from typing import Final

import msgspec

from ledger.errors import LedgerError
from ledger.merkle.notes import COSIGNATURE, SEED_BYTES, NoteError, NoteKey, SigningKey, is_name
from logberg.processes.settings.settings_files import SettingsError, resolve
from logberg.processes.settings.shared_settings import address_problems, log_level_problems
from logberg.witness.state import WitnessState, WitnessStateError
from logberg.witness.witness import WitnessedLog
from runtime.disk.interface import Disk
from runtime.disk.real import RealDisk
from runtime.disk.secret_file import SecretFileError, read_secret

KEY_FILE: Final = "witness.key"
PUBLIC_FILE: Final = "witness.pub"


class WitnessTls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tls]` of a witness: paths of PEM files. Who calls is not asked for a certificate."""

    cert: str
    """The witness's certificate, followed by intermediate ones."""
    key: str
    """Its key, without a password, readable by nobody else."""


class WitnessedLogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[logs]]`: one log that the witness cosigns."""

    keys: tuple[str, ...]
    """The keys that sign its heads, each as a line or as a file with one: a controller's `head.pub`
    or the line in it. All of them are of one origin."""
    signatures: int = 0
    """So many of the keys must have signed a head; 0: a majority of them."""
    generation: int = 1
    """Which life of the cluster is witnessed: 1, and one more after each restore or recovery."""


class WitnessSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`logberg witness --config FILE`."""

    name: str
    """The name of the witness's key: a URL without its scheme, such as witness.example.org/one."""
    data: str
    """The witness's folder, of its own, on no disk of a controller."""
    listen: str = "127.0.0.1:19390"
    """host:port of its listener."""
    logs: tuple[WitnessedLogSettings, ...] = ()
    """The logs that it cosigns. Of each origin there is one."""
    tls: WitnessTls | None = None
    """The listener's certificate; needed to listen beyond this machine."""
    insecure_network: bool = False
    """Listen beyond this machine without TLS; also --insecure-network."""
    log_level: str = "info"
    """debug, info, warning or error."""


def check_witness(settings: WitnessSettings) -> list[str]:
    """Say what is wrong with a witness's settings, a sentence each."""
    found = log_level_problems(settings.log_level) + address_problems([settings.listen], "listen")
    if not is_name(settings.name):
        found.append(
            f"name is {settings.name!r}; use a text without spaces and +, such as "
            "witness.example.org/one."
        )
    if not settings.logs:
        found.append("logs is empty; name the keys of at least one log.")
    for number, log in enumerate(settings.logs):
        if not log.keys:
            found.append(f"logs[{number}].keys is empty; name the log's keys.")
        if not 0 <= log.signatures <= len(log.keys):
            found.append(
                f"logs[{number}].signatures is {log.signatures}; use 0 for a majority, or at most "
                f"{len(log.keys)}, the number of keys."
            )
        if log.generation < 1:
            found.append(f"logs[{number}].generation is {log.generation}; it must be 1 or more.")
    return found


def witnessed_logs(settings: WitnessSettings, config_file: Path) -> list[WitnessedLog]:
    """Check the settings, and read the keys of all logs. Raises SettingsError."""
    if problems := check_witness(settings):
        raise SettingsError(" ".join(problems))
    found: dict[str, WitnessedLog] = {}
    for number, log in enumerate(settings.logs):
        keys = [_read_key(text, config_file, f"logs[{number}].keys") for text in log.keys]
        names = {key.name for key in keys}
        if len(names) > 1 or len(set(keys)) < len(keys):
            raise SettingsError(
                f"logs[{number}].keys: the keys of one log have one name and differ; these have "
                f"{', '.join(sorted(names))}."
            )
        name = names.pop()
        origin = name if log.generation == 1 else f"{name}/{log.generation}"
        if origin in found:
            raise SettingsError(f"logs names {origin} twice; join their keys.")
        own = tuple(NoteKey(origin, key.public) for key in keys)
        found[origin] = WitnessedLog(origin, own, log.signatures or len(own) // 2 + 1)
    return list(found.values())


def _read_key(text: str, config_file: Path, where: str) -> NoteKey:
    try:
        line = text if "+" in text else resolve(config_file, text).read_text()
        return NoteKey.parse(line)
    except OSError as error:
        raise SettingsError(f"{where}: {text} can't be read ({error.strerror}).") from None
    except (LedgerError, UnicodeDecodeError) as error:
        raise SettingsError(f"{where}: {error}.") from None


def open_folder(name: str, disk: RealDisk) -> tuple[SigningKey, WitnessState]:
    """Take the witness's folder, and draw its key at the first start.

    Raises SettingsError, FolderInUseError, OSError.
    """
    disk.lock()
    try:
        key = _load_key(name, disk)
        state = WitnessState(disk)
        state.open(key.public)
    except (WitnessStateError, SecretFileError, NoteError) as error:
        disk.close()
        raise SettingsError(f"{disk.root}: {error}") from None
    except BaseException:
        disk.close()
        raise
    return key, state


def _load_key(name: str, disk: RealDisk) -> SigningKey:
    if not disk.exists(KEY_FILE):
        # The state first: a folder with a key and no state has lost what it cosigned.
        WitnessState.begin(disk)
        disk.replace(KEY_FILE, f"{token_bytes(SEED_BYTES).hex()}\n".encode())
    key = SigningKey(name, read_secret(disk.root / KEY_FILE, SEED_BYTES), COSIGNATURE)
    _write_public(disk, key)
    return key


def _write_public(disk: Disk, key: SigningKey) -> None:
    line = f"{key.public.text}\n".encode()
    if not disk.exists(PUBLIC_FILE) or disk.read(PUBLIC_FILE) != line:
        disk.replace(PUBLIC_FILE, line)
