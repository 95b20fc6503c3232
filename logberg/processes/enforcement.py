"""Whether a node enforces rights where its file doesn't say it (ADR 0092).

Rule: a folder that was never used is a new node's, and its file must say `authorization`. Otherwise
a new cluster would be open to all because a line was forgotten. A node with a folder of before goes
on as it was, without enforcement, and logs a warning.
"""

from pathlib import Path
from typing import Final

import msgspec

from logberg.processes.settings.broker_settings import BrokerSettings
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import SettingsError
from metadata.acl_rules import Enforcement
from snapshots.checkpoint import FOLDER

_OF_A_CONTROLLER: Final = ("journal", "log")
"""What a controller's folder holds after its first start, or after a restore."""
_OF_AN_AGENT: Final = (FOLDER,)
"""What an agent's folder holds after its first start: its saved images."""


def with_enforcement(settings: ControllerSettings, data: Path) -> ControllerSettings:
    """Return a controller's settings with a value of `authorization`. Raises SettingsError.

    `data` is the controller's folder, which may not be there yet.
    """
    if settings.authorization:
        return settings
    _check_used(data, _OF_A_CONTROLLER, "and name super_users")
    return msgspec.structs.replace(settings, authorization=Enforcement.OFF.value)


def agent_enforcement(settings: BrokerSettings, data: Path) -> BrokerSettings:
    """Return the settings of an agent in the same way. Raises SettingsError."""
    if settings.authorization:
        return settings
    _check_used(data, _OF_AN_AGENT, "and the controllers' super_users")
    return msgspec.structs.replace(settings, authorization=Enforcement.OFF.value)


def is_new(data: Path) -> bool:
    """Return whether no controller has run on this folder, and no log was put there."""
    return not _is_used(data, _OF_A_CONTROLLER)


def _check_used(data: Path, names: tuple[str, ...], besides: str) -> None:
    if not _is_used(data, names):
        raise SettingsError(
            f'authorization is missing, and {data} is new. Write authorization = "on" {besides}; '
            'or "off", if whoever is let in may do everything; or what the other nodes of the '
            "cluster say."
        )


def _is_used(data: Path, names: tuple[str, ...]) -> bool:
    return any((data / name).exists() for name in names)
