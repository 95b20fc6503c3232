"""Compares declared configs with those of an image: of topics, brokers, groups, client metrics.

A value that is as declared isn't sent to the manager, which would write a broker's again. Rule: a
sensitive value is never shown, and never removed because it isn't declared: no export has it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from controller.managers.configs import ConfigManager, resource_of, shown_name
from controller.managers.declared.plan import CHANGE, STEP, ApplyPlan, Item, Working, invalid
from metadata.configs.definitions import KINDS as CONFIG_KINDS
from metadata.configs.definitions import is_sensitive
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.messages import (
    AlterConfigsReply,
    AlterConfigsRequest,
    ConfigChange,
    ConfigOperation,
    ConfigResourceChange,
    DeclaredConfigs,
)
from metadata.records import ConfigResourceType
from metadata.records.configs import config_kind

HIDDEN: Final = "(hidden)"
KINDS: Final = (
    ConfigResourceType.BROKER,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.GROUP,
)
"""The types of resources that are declared under `configs`, in the order of an image."""


class ConfigComparison:
    """Collects the changes of configs of one plan."""

    def __init__(self, plan: ApplyPlan, image: MetadataImage, configs: ConfigManager) -> None:
        self._plan = plan
        self._configs = configs
        self._image = image
        self._changes: list[ConfigResourceChange] = []
        self._items: list[Item] = []

    def compare(
        self,
        item: Item,
        resource: tuple[ConfigResourceType, str],
        wanted: Mapping[str, str | None],
        *,
        prune: bool,
    ) -> None:
        """Note how the configs of a resource differ."""
        kind, name = resource
        before = self._image.configs.of(kind, name)
        changes = [
            ConfigChange(key, value, _operation(value))
            for key, value in sorted(wanted.items())
            if self._differs(resource, key, before.get(key), value)
        ]
        if prune:
            changes += [
                ConfigChange(key, operation=ConfigOperation.DELETE)
                for key in sorted(before.keys() - wanted.keys())
                if not is_sensitive(kind, key)
            ]
        if not changes:
            return
        for change in changes:
            shown = (before.get(change.name), change.value)
            if is_sensitive(kind, change.name):
                shown = (shown[0] and HIDDEN, shown[1] and HIDDEN)
            item.differs(change.name, *shown)
        self._changes.append(
            ConfigResourceChange(config_kind(kind), shown_name(kind, name), tuple(changes))
        )
        self._items.append(item)

    def _differs(
        self,
        resource: tuple[ConfigResourceType, str],
        key: str,
        before: str | None,
        wanted: str | None,
    ) -> bool:
        if before is None or wanted is None:
            return before != wanted
        return not self._configs.secrets.is_same(*resource, key, before, wanted)

    def compare_all(self, declared: Sequence[DeclaredConfigs], *, prune: bool) -> Working:
        """Compare what is declared under `configs`, and with `prune` also what isn't."""
        known: set[tuple[ConfigResourceType, str]] = set()
        for number, wanted in enumerate(declared, 1):
            item = None
            try:
                if wanted.resource_type == "topic":
                    raise invalid("the configs of a topic are declared with the topic")
                resource = resource_of(wanted.resource_type, wanted.resource_name)
                item = self._plan.item("configs", _name_of(*resource))
                known.add(resource)
                self.compare(item, resource, wanted.configs, prune=prune)
            except LogbergError as error:
                shown = f"{wanted.resource_type[:50]} {wanted.resource_name[:300]}"
                (item or self._plan.item("configs", shown)).refuse(error)
            if number % STEP == 0:
                yield
        if prune:
            for number, resource in enumerate(self._others(known), 1):
                item = Item("configs", _name_of(*resource))
                self.compare(item, resource, {}, prune=True)
                if item.action == CHANGE:
                    self._plan.items.append(item)
                if number % STEP == 0:
                    yield

    def decide(self) -> Working:
        """Let the manager decide about all changes."""
        if not self._changes:
            return
        try:
            result = yield from self._configs.alter(
                self._image, AlterConfigsRequest(tuple(self._changes))
            )
        except LogbergError as error:
            # It refuses the only resource like this, or a request that is too long.
            for item in self._items:
                item.refuse(error)
            return
        reply = result.reply
        assert isinstance(reply, AlterConfigsReply)
        for item, altered in zip(self._items, reply.resources, strict=True):
            item.refuse(altered.error)
        self._plan.add(result)

    def _others(
        self, known: set[tuple[ConfigResourceType, str]]
    ) -> Iterator[tuple[ConfigResourceType, str]]:
        """Yield the resources that have configs and aren't declared.

        Without those of brokers that aren't registered: nobody can change them.
        """
        cluster = self._image.cluster
        for kind in KINDS:
            for name in self._image.configs.named(kind):
                gone = (
                    kind == ConfigResourceType.BROKER
                    and name
                    and not (int(name) in cluster.brokers or int(name) in cluster.controllers)
                )
                if (kind, name) not in known and not gone:
                    yield kind, name


def shown_configs(declared: DeclaredConfigs) -> dict[str, str | None]:
    """Return declared configs without the values that are never shown."""
    kind = CONFIG_KINDS.get(declared.resource_type)
    return {
        key: "" if value is not None and kind is not None and is_sensitive(kind, key) else value
        for key, value in declared.configs.items()
    }


def _name_of(kind: ConfigResourceType, name: str) -> str:
    return f"{config_kind(kind)} {shown_name(kind, name)}"


def _operation(value: str | None) -> ConfigOperation:
    return ConfigOperation.DELETE if value is None else ConfigOperation.SET
