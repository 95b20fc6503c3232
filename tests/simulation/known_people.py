"""Who is who in an image, and what the entries there allow: the judge of rule E7.

Rule: it reads records, and shares no code with the part of an agent that it judges. It opens names
with every key that a controller ever drew, also with those that were destroyed since. The second
judge of entries (`tests/reference/access.py`) says what they allow.
"""

from collections.abc import Callable
from typing import Any, Final

from metadata.sealing import ClusterKey
from runtime.http.requests import Caller
from tests.reference.access import Action, Entry, judge
from tests.simulation.rights_fold import entry_of

BY_THE_LOG: Final = "delegation-token"
"""The method of a caller whom the log names, by a pseudonym if there is one."""
_USER: Final = "User:"
_KAFKA_CLUSTER: Final = "kafka-cluster"
_LENGTH_BYTES: Final = 2


class KnownPeople:
    """What the test knows of people: more than any node does."""

    def __init__(self, key_for: Callable[[bytes], ClusterKey]) -> None:
        """`key_for` returns what opens every name that was sealed with the tree of this id."""
        self._key_for = key_for
        self._names: dict[bytes, str] = {}
        """By sealed block."""
        self.pseudonyms: dict[str, str] = {}
        """Each pseudonym that was ever seen, and the name behind it."""

    def tied(self, image: Any) -> dict[str, str]:
        """Return the pseudonym of each name that has one in an image."""
        erased = self._erased(image)
        found = {}
        for pseudonym, record in image.erasures.pseudonyms.items():
            if pseudonym not in erased:
                found[self._name(image, pseudonym, record.name)] = pseudonym
        return found

    def judged_as(self, image: Any, caller: Caller) -> str | None:
        """Return the principal of whom the entries of an image speak; None: nobody may come so."""
        name = caller.principal.removeprefix(_USER)
        if name in self.pseudonyms:
            erased = name in self._erased(image)
            return None if erased or caller.method != BY_THE_LOG else caller.principal
        return _USER + self.tied(image).get(name, name)

    def shown(self, image: Any, principal: str, host: str) -> list[str]:
        """Return the topics that the entries of an image let a principal see, by name."""
        entries = [
            entry_of(record)
            for _, record in image.acls.entries.items()
            if record.principal in (principal, f"{_USER}*")
        ]
        if _may_describe(entries, principal, host, "CLUSTER", _KAFKA_CLUSTER):
            return list(image.topics.names)
        return [
            name
            for name in image.topics.names
            if _may_describe(entries, principal, host, "TOPIC", name)
        ]

    def _erased(self, image: Any) -> set[str]:
        erased = image.erasures.erased.values()
        return {record.subject.removeprefix("user:") for record in erased}

    def _name(self, image: Any, pseudonym: str, block: bytes) -> str:
        name = self._names.get(block)
        if name is None:
            key = self._key_for(image.quorum.subject_keys_id)
            opened = key.open(f"name/{pseudonym}", block)
            length = int.from_bytes(opened[:_LENGTH_BYTES], "big")
            name = opened[_LENGTH_BYTES : _LENGTH_BYTES + length].decode()
            self._names[block] = self.pseudonyms[pseudonym] = name
        return name


def _may_describe(entries: list[Entry], principal: str, host: str, kind: str, name: str) -> bool:
    action = Action(principal, host, "DESCRIBE", kind, name)
    return judge(entries, action, (), allowed_without_entries=False).allowed
