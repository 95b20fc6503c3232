"""Policies that a configuration file names: loaded at the start, or refused with what to do."""

import importlib.metadata

import msgspec
import pytest

from logberg import PolicyViolationError, ProposedTopic
from logberg.processes import policy_loading
from logberg.processes.policy_loading import load_policies
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import SettingsError
from tests.unit.logberg.processes.settings.test_settings import GOOD


class Naming:
    """The policy of docs/how-to.md."""

    def validate(self, topic: ProposedTopic) -> None:
        if "." not in topic.name:
            raise PolicyViolationError("the name begins with the team, as in billing.invoices")


ready = Naming()
useless = object()


class Broken:
    def __init__(self) -> None:
        raise RuntimeError("no licence")


def settings(**named: str) -> ControllerSettings:
    return msgspec.convert({**GOOD, **named}, ControllerSettings)


def test_no_policy_is_needed() -> None:
    assert load_policies(settings()) == (None, None)


@pytest.mark.parametrize("name", ["Naming", "ready"])
def test_a_class_is_called_and_an_object_is_taken(name: str) -> None:
    policies = load_policies(settings(create_topic_policy=f"{__name__}:{name}"))
    assert isinstance(policies.create_topic, Naming)
    assert policies.alter_config is None


def test_an_installed_plug_in_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("naming", f"{__name__}:Naming", policy_loading.GROUP)
    monkeypatch.setattr(
        policy_loading, "entry_points", lambda **_: importlib.metadata.EntryPoints([point])
    )
    assert isinstance(load_policies(settings(alter_config_policy="naming")).alter_config, Naming)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere", "alter_config_policy is 'nowhere'. Use package.module:name, or an entry point"),
        ("no_such_module:X", "can't be loaded (ModuleNotFoundError"),
        (f"{__name__}:Absent", "can't be loaded (AttributeError"),
        (f"{__name__}:Broken", "can't be loaded (RuntimeError: no licence)"),
        (f"{__name__}:useless", "has no method `validate`"),
    ],
)
def test_what_can_not_be_loaded_is_named(name: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_policies(settings(alter_config_policy=name))
    assert says in str(refused.value)
