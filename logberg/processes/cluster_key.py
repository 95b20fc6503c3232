"""The cluster key of a controller or of a broker's agent, from its file (ADR 0031, 0040).

Rule: a controller without the file starts, and refuses what needs the key. A file that can't be
used stops the start: a controller with a wrong key would seal secrets that others can't open. An
agent has a key only if its settings name the file.

The secret of delegation tokens comes from a file of its own. It is a text that Kafka's brokers have
in their settings, too.
"""

from pathlib import Path
from typing import Final

from logberg.client.cluster_key_file import read_cluster_key
from logberg.processes.settings.broker_settings import BrokerSettings
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import SettingsError, resolve
from metadata.sealing import ClusterKey
from runtime.disk.secret_file import SecretFileError, read_secret_text

FILE: Final = "cluster.key"
"""Its name in a controller's data folder, where the settings name no other file."""


def load_cluster_key(settings: ControllerSettings, config_file: Path) -> ClusterKey | None:
    """Return a controller's cluster key; None if it has none. Raises SettingsError."""
    path = resolve(config_file, settings.cluster_key or settings.data)
    if settings.cluster_key is None:
        path /= FILE
    key = _read(path) if settings.cluster_key is not None or path.exists() else None
    if settings.seal_addresses and key is None:
        raise SettingsError(
            "seal_addresses is true, and there is no cluster key to seal addresses with. `logberg "
            "cluster-key` makes one; all controllers of a cluster have the same."
        )
    if settings.pseudonyms and key is None:
        raise SettingsError(
            "pseudonyms names people, and there is no cluster key to seal their names with. "
            "`logberg cluster-key` makes one; all controllers of a cluster have the same."
        )
    return _with_token_secret(key, settings.token_secret, config_file)


def load_brokers_key(settings: BrokerSettings, config_file: Path) -> ClusterKey | None:
    """Return the cluster key of a broker's agent; None if it has none. Raises SettingsError."""
    name = settings.cluster_key
    key = None if name is None else _read(resolve(config_file, name))
    return _with_token_secret(key, settings.token_secret, config_file)


def _read(path: Path) -> ClusterKey:
    try:
        return read_cluster_key(path)
    except SecretFileError as error:
        raise SettingsError(
            f"cluster_key: {error}. `logberg cluster-key` makes such a file; all controllers of a "
            "cluster have the same."
        ) from None


def _with_token_secret(
    key: ClusterKey | None, name: str | None, config_file: Path
) -> ClusterKey | None:
    if name is None:
        return key
    if key is None:
        raise SettingsError("token_secret is given without a cluster key; tokens need both.")
    try:
        return key.with_token_secret(read_secret_text(resolve(config_file, name)))
    except SecretFileError as error:
        raise SettingsError(
            f"token_secret: {error}. Write the value of the brokers' delegation.token.secret.key "
            "into it; all controllers of a cluster have the same."
        ) from None
