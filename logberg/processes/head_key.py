"""The key with which a controller signs heads, in its own folder (ADR 0085).

Rule: the key is this controller's alone, and apart from TLS. The first start draws it; it is never
sent anywhere, and only a rotation that is in the log replaces it (`controller.signing.own_keys`).
Beside it lies the public key, for people to write down. Each file is there whole or not at all,
whenever the process dies.
"""

from pathlib import Path
from secrets import token_bytes

from controller.signing.own_keys import FILE, PUBLIC_FILE
from ledger.merkle.heads import origin_of
from ledger.merkle.notes import SEED_BYTES, SigningKey
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import SettingsError, resolve
from runtime.disk.real import RealDisk
from runtime.disk.secret_file import SecretFileError, read_secret


def load_head_key(settings: ControllerSettings, config_file: Path) -> bytes:
    """Return the private key, drawn at the first start; empty if heads are not to be signed.

    Raises SettingsError.
    """
    if not settings.signed_head_ms:
        return b""
    folder = resolve(config_file, settings.data)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        disk = RealDisk(folder)
        if not disk.exists(FILE):
            disk.replace(FILE, f"{token_bytes(SEED_BYTES).hex()}\n".encode())
        seed = read_secret(folder / FILE, SEED_BYTES)
        public = SigningKey(origin_of(settings.cluster_id), seed).public.text
        line = f"{public}\n".encode()
        if not disk.exists(PUBLIC_FILE) or disk.read(PUBLIC_FILE) != line:
            disk.replace(PUBLIC_FILE, line)
    except (SecretFileError, OSError) as error:
        raise SettingsError(f"the key that signs heads: {error}") from None
    return seed
