"""The words in which `doctor` says what it found."""

from enum import StrEnum

import msgspec


class CheckState(StrEnum):
    """How it is."""

    OK = "ok"
    LOOK = "look"
    ACT = "act"


class NodeCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding."""

    check: str
    """Such as clocks or disks."""
    node: str
    state: CheckState
    found: str
    do: str = ""
    """What to do; empty if nothing is to be done."""
