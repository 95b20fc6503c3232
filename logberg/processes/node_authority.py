"""The cluster's authority from the files of a controller's `[join]` (ADR 0089).

Rule: the key's file is for the controller's user only. Files that can't be used stop the start.
"""

import stat
from pathlib import Path

from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import SettingsError, resolve
from metadata.certifying import AuthorityError, NodeAuthority


def load_authority(settings: ControllerSettings, config_file: Path) -> NodeAuthority | None:
    """Return the authority; None if nodes don't join by tokens. Raises SettingsError."""
    if settings.join is None:
        return None
    certificate = resolve(config_file, settings.join.ca_cert)
    key = resolve(config_file, settings.join.ca_key)
    try:
        if key.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SettingsError(
                f"[join] ca_key: others than its user may open {key}; run: chmod 600 {key}"
            )
        return NodeAuthority(certificate.read_bytes(), key.read_bytes())
    except OSError as error:
        raise SettingsError(f"[join]: {error.filename} can't be read: {error.strerror}.") from None
    except AuthorityError as error:
        raise SettingsError(f"[join]: {certificate} and {key} can't be used: {error}.") from None
