"""Mutants of pseudonyms: who gets one, what follows from a name, and what would fail open."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited

_SEEDS = searched_in("cluster", "erasures")


def _of(name: str, what: str, target: str, *edits: tuple[str, str]) -> Mutant:
    return Mutant(name, "I27", what, (Patch(target, edited(*edits)),))


_DOOR = "controller.people.door.PeopleDoor"
_GIVING = "controller.people.giving.Giving"
_AT_AGENTS = "broker_agent.people.AgentPeople"
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
    Mutant(
        "an agent that awaits the keys judges people by their names",
        "I27",
        "Entries that deny something to the pseudonym do not count meanwhile.",
        (
            Patch(
                f"{_AT_AGENTS}._check_keys",
                edited(("if tree is None or tree != image.quorum.subject_keys_id:", "if False:")),
            ),
            Patch(
                f"{_AT_AGENTS}.principal_of",
                edited(("raise _awaited()\n    pseudonym =", "return principal\n    pseudonym =")),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "an agent without the key judges people by their names",
        "I27",
        "Whoever an entry denies something asks the agent that can't tell people apart.",
        (
            Patch(
                f"{_AT_AGENTS}.principal_of",
                edited(
                    (
                        "if not image.erasures.pseudonyms or",
                        "if self._key is None or not image.erasures.pseudonyms or",
                    )
                ),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "an agent takes a pseudonym after its erasure",
        "I27",
        "A session from before the erasure goes on with the entries of the pseudonym.",
        (
            Patch(
                f"{_AT_AGENTS}.principal_of",
                edited(("_check_not_erased(image, principal)", "pass")),
            ),
        ),
        _SEEDS,
    ),
    Mutant(
        "an agent opens names once",
        "I27",
        "Whoever gets a pseudonym later waits for ever.",
        (
            Patch(
                f"{_AT_AGENTS}.look",
                edited(
                    ("not None or self._people", "not None or self._people._names or self._people")
                ),
            ),
        ),
        _SEEDS,
    ),
)
