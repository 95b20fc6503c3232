"""The cluster key of a controller or of a broker's agent, from its file (ADR 0031, 0040).

Rule: a controller without the file starts, and refuses what needs the key. A file that can't be
used stops the start: a controller with a wrong key would seal secrets that others can't open. An
agent has a key only if its settings name the file.
"""

from pathlib import Path
from typing import Final

from logberg.client.cluster_key_file import read_cluster_key
from logberg.processes.settings import BrokerSettings, ControllerSettings, SettingsError, resolve
from metadata.sealing import ClusterKey
from runtime.disk.secret_file import SecretFileError

FILE: Final = "cluster.key"
"""Its name in a controller's data folder, where the settings name no other file."""


def load_cluster_key(settings: ControllerSettings, config_file: Path) -> ClusterKey | None:
    """Return a controller's cluster key; None if it has none. Raises SettingsError."""
    if settings.cluster_key is not None:
        path = resolve(config_file, settings.cluster_key)
    else:
        path = resolve(config_file, settings.data) / FILE
        if not path.exists():
            return None
    return _read(path)


def load_brokers_key(settings: BrokerSettings, config_file: Path) -> ClusterKey | None:
    """Return the cluster key of a broker's agent; None if it has none. Raises SettingsError."""
    if settings.cluster_key is None:
        return None
    return _read(resolve(config_file, settings.cluster_key))


def _read(path: Path) -> ClusterKey:
    try:
        return read_cluster_key(path)
    except SecretFileError as error:
        raise SettingsError(
            f"cluster_key: {error}. `logberg cluster-key` makes such a file; all controllers of a "
            "cluster have the same."
        ) from None
