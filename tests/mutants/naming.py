"""Mutants of pseudonyms: who gets one, what follows from a name, and what would fail open."""

from tests.mutants.mutant import Mutant
from tests.mutants.patches import Patch, edited


def _of(name: str, what: str, target: str, *edits: tuple[str, str]) -> Mutant:
    return Mutant(name, "I27", what, (Patch(target, edited(*edits)),))


_DOOR = "controller.people.door.PeopleDoor"
_GIVING = "controller.people.giving.Giving"
NAMING = (
    _of(
        "the number of a pseudonym follows from the name",
        "Whoever has the cluster key tries all names against it.",
        f"{_GIVING}._given",
        ("number = self._new_number(image, made)", 'number = key.number_of(f"user:{name}")'),
    ),
    _of(
        "the records of pseudonyms stand in another order than their numbers",
        "An order that follows from the names tells between which of them an erased one stood.",
        f"{_GIVING}._given",
        (
            "for pseudonym in sorted(made)]",
            "for pseudonym in sorted(made, key=self.people._expected.get)]",
        ),
    ),
    _of(
        "a sealed name shows its length",
        "The name is not filled up.",
        "controller.people.giving.as_sealed",
        ("return data.ljust(", "return data.ljust(0 * "),
    ),
    _of(
        "an erasure leaves the tie of name and pseudonym",
        "Whoever comes back is known under the old pseudonym.",
        "metadata.image.erasures.ErasuresDelta.erase",
        ("self.pseudonyms.remove(pseudonym)", "pass"),
    ),
    _of(
        "people get a second pseudonym when the first can't be opened",
        "Entries that deny something to the first one do not count any more.",
        f"{_GIVING}._given",
        ("if not self.people.opened_all:", "if False:"),
    ),
    _of(
        "entries in clear stop counting",
        "A person whom an entry in clear denies something gets a pseudonym that it is not about.",
        f"{_GIVING}._given",
        ("yield from _check_no_entries(image, missing)", "pass"),
    ),
    _of(
        "a pseudonym is used after its erasure",
        "What was under way when the person was erased is decided all the same.",
        f"{_DOOR}.while_given",
        ("self._giving.check_given(image, pseudonyms)", "pass"),
    ),
    _of(
        "whoever is denied something is erased",
        "The person comes back under another pseudonym, and is not denied it.",
        "controller.managers.clients.erasure._check_pseudonym",
        ("entry.principal == who", "False"),
    ),
    _of(
        "whoever may not name anybody writes names",
        "A claim that nothing grants gives a pseudonym.",
        f"{_DOOR}._asking",
        ("self._asks_for(request)", "pass"),
    ),
    _of(
        "attempts name whom they are about",
        "Only the name of who asked becomes a pseudonym.",
        f"{_DOOR}.attempt",
        ("_SUBJECT + known.get(about.removeprefix(USER), about) if about else", ""),
    ),
    _of(
        "an erasure of an unknown name writes it",
        "The record of the erasure has a name that the log did not have.",
        "controller.managers.clients.erasure.ErasureManager._user_erased",
        ("if not removed and self._has_pseudonym(owner):", "if False:"),
    ),
)
