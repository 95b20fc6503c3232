"""Loads a controller's policies: plug-ins that refuse new topics or changes of configs.

A setting names an object as `package.module:name`, or a plug-in that an installed distribution
declares under the entry point group `logberg.policies`. A class is called without arguments. The
result has a method `validate` (`controller.policies`).
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from controller.policies import Policies
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import SettingsError

GROUP = "logberg.policies"


def load_policies(settings: ControllerSettings) -> Policies:
    """Load the policies that the settings name. Raises SettingsError."""
    return Policies(
        create_topic=_loaded("create_topic_policy", settings.create_topic_policy),
        alter_config=_loaded("alter_config_policy", settings.alter_config_policy),
    )


def _loaded(key: str, name: str) -> Any:
    if not name:
        return None
    point = EntryPoint(name, name, GROUP) if ":" in name else _installed(key, name)
    try:
        found = point.load()
        policy = found() if isinstance(found, type) else found
    except Exception as error:
        raise SettingsError(
            f"{key} is {name!r}, which can't be loaded ({type(error).__name__}: {error}). Install "
            "it where the controller runs."
        ) from error
    if not callable(getattr(policy, "validate", None)):
        raise SettingsError(f"{key} is {name!r}, which has no method `validate`.")
    return policy


def _installed(key: str, name: str) -> EntryPoint:
    """Return the entry point of that name. Raises SettingsError."""
    found = entry_points(group=GROUP, name=name)
    if not found:
        known = ", ".join(sorted(entry_points(group=GROUP).names)) or "none"
        raise SettingsError(
            f"{key} is {name!r}. Use package.module:name, or an entry point of the group {GROUP!r} "
            f"(installed: {known})."
        )
    return next(iter(found))
