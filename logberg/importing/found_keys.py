"""What a store of keys held at one moment, read into records of keys: a plan, and its manifest.

Rule: a key that belongs to a session is left, because a session does not move. A key that can't be
one here is malformed, so that nobody loses it without knowing: such an import stops, unless one
asks for the rest.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from controller.config import CoordinationLimits
from logberg.importing.import_plan import ImportPlan
from metadata.plain_text import control_character
from metadata.records import KeyRecord

OF_A_SESSION: Final = "it ends with a session of the source, and a session does not move"
OF_A_REQUEST: Final = "it remembers a request to the source, and later requests come here"
_LIMITS: Final = CoordinationLimits()


class FoundKey(NamedTuple):
    """One key of the source."""

    path: str
    """As the source names it."""
    key: str
    """Its name among the keys of coordination."""
    value: bytes = b""
    left: str = ""
    """Why it isn't taken; empty: it is."""
    malformed: str = ""
    """Why it can't be read; empty: it can."""


class StoreReading(NamedTuple):
    """What was read of a store."""

    keys: tuple[FoundKey, ...]
    revision: int
    """Of the source, as the manifest records it."""
    newest_token: int
    """No fencing token that the source has given is larger."""
    consistency: str
    """Why the keys are the state at one moment."""


def plan_of_keys(keys: Iterable[FoundKey], prefix: str = "", into: str = "") -> ImportPlan:
    """Return what becomes of the keys that begin with `prefix`.

    `prefix` is cut off. `into` is a namespace: it stands before each key, with a slash.
    """
    plan = ImportPlan()
    names: set[str] = set()
    for found in keys:
        if found.left:
            plan.leave(found, found.left)
        elif found.malformed:
            plan.refuse(found, found.malformed)
        elif found.key.startswith(prefix):
            name = found.key.removeprefix(prefix)
            name = f"{into}/{name}" if into else name
            why = _why_not(name, found.value, names)
            if why:
                plan.refuse(found, why)
            else:
                names.add(name)
                plan.take(found, [KeyRecord(name, found.value, 0, 0, 1)])
    return plan


def _why_not(name: str, value: bytes, names: set[str]) -> str:
    """Return why a key can't be one here; empty: it can."""
    size = len(name.encode())
    if not 1 <= size <= _LIMITS.key_bytes:
        return f"its name has {size} bytes here, and a key's has 1 to {_LIMITS.key_bytes}"
    if control := control_character(name):
        return f"its name has the control character {control}"
    if len(value) > _LIMITS.value_bytes:
        return f"its value has {len(value):,} bytes, and the most are {_LIMITS.value_bytes:,}"
    return "another key has the same name here" if name in names else ""
