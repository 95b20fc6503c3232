"""The key with which a controller signs heads, in its own folder (ADR 0085).

Rule: the key is this controller's alone, and apart from TLS. The first start draws it; it is never
overwritten and never sent anywhere. Beside it lies the public key, for people to write down.
"""

from pathlib import Path
from typing import Final

from ledger.merkle.heads import origin_of
from ledger.merkle.notes import SEED_BYTES, SigningKey
from logberg.processes.controller_settings import ControllerSettings
from logberg.processes.settings_files import SettingsError, resolve
from runtime.disk.secret_file import SecretFileError, read_secret, write_new_secret

FILE: Final = "head.key"
PUBLIC_FILE: Final = "head.pub"


def load_head_key(settings: ControllerSettings, config_file: Path) -> bytes:
    """Return the private key, drawn at the first start; empty if heads are not to be signed.

    Raises SettingsError.
    """
    if not settings.signed_head_ms:
        return b""
    folder = resolve(config_file, settings.data)
    path = folder / FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists():
            seed = read_secret(path, SEED_BYTES)
        else:
            seed = write_new_secret(path, SEED_BYTES)
        public = SigningKey(origin_of(settings.cluster_id), seed).public.text
        beside = folder / PUBLIC_FILE
        if not beside.exists() or beside.read_text(encoding="utf-8") != f"{public}\n":
            beside.write_text(f"{public}\n", encoding="utf-8")
    except (SecretFileError, OSError) as error:
        raise SettingsError(f"the key that signs heads: {error}") from None
    return seed
