"""Mutants of configs: what is written, what applies, what a change does, and what is shown."""

from typing import Any

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives, instead

_MANAGER = "controller.managers.configs"
_EFFECTIVE = "metadata.configs.effective.Effective"


def _nothing(*_arguments: Any) -> None:
    """What is checked: it passes."""


CONFIGURING = (
    Mutant(
        "config checked by nobody",
        "C1",
        "Values that Kafka refuses get into the log.",
        (Patch(f"{_MANAGER}.check", instead(_nothing)),),
        searched_in("cluster", "configs"),
    ),
    Mutant(
        "cluster's config before the node's",
        "C2",
        "The default of all brokers counts before what is set for one.",
        (
            Patch(
                f"{_EFFECTIVE}._candidates",
                edited(
                    (
                        "yield from _by_synonym(known, self._node, ConfigSource.BROKER)",
                        "yield from _by_synonym(known, self._cluster, ConfigSource.CLUSTER)",
                    )
                ),
            ),
        ),
        searched_in("cluster", "configs"),
    ),
    Mutant(
        "unclean elections everywhere",
        "C4",
        "A topic's config against unclean elections is not read.",
        (Patch("controller.managers.topic_rules.allows_unclean", gives(value=True)),),
        searched_in("cluster", "configs"),
    ),
    Mutant(
        "no election when one is allowed",
        "C5",
        "A config that allows unclean elections waits for the next event of a broker.",
        (
            Patch(
                "controller.leader.parts.LeaderParts._on_records",
                edited(("record.name == UNCLEAN", "False")),
            ),
        ),
    ),
    Mutant(
        "configs before their ELRs are cleared",
        "1",
        "A new min ISR is written in the first round, while old ELRs are still there.",
        (Patch(f"{_MANAGER}.ConfigManager.alter", edited(("if sweep.more:", "if False:"))),),
    ),
    Mutant(
        "last candidates forgotten",
        "1",
        "A change of min ISR empties the ELR of a partition that has nobody else to elect.",
        (Patch(f"{_MANAGER}._may_lose_elr", edited(("partition.isr and ", ""))),),
    ),
    Mutant(
        "append without the default",
        "C1",
        "APPEND to a key that is not set begins with an empty list.",
        (
            Patch(
                f"{_MANAGER}._new_value",
                edited(('DEFINITIONS[kind][change.name].default or ""', '""')),
            ),
        ),
    ),
    Mutant(
        "secrets shown",
        "C2",
        "A description of a broker's configs holds its passwords.",
        (
            Patch(
                "controller.http.describe_configs._entry",
                edited(("None if config.sensitive else config.value", "config.value")),
            ),
        ),
    ),
)
