"""Which of several folders is the most complete, and what may be lost with it.

Rule: the log whose last batch has the highest epoch is the most complete, and among those the one
that ends last. Whatever a majority of the voters acknowledged is in it, if any of the folders holds
it. The end of a damaged journal says nothing: only batches count that can be read and that continue
the log without a gap.

*Certain* is what some folder knows to be committed. *Probable* is what only a journal holds: its
leader may have acknowledged it or not. What was never on any of the folders may be lost, and nobody
can say how much that is.
"""

from collections.abc import Sequence
from typing import NamedTuple

from logberg.recovery.survivors import Survivor
from quorum.recovery.holdings import older_copies


class NoChoiceError(Exception):
    """The folders can't be recovered from together. The message says why, and what to do."""


class Rejected(NamedTuple):
    """A folder that was not chosen, and why."""

    survivor: Survivor
    why: str


class Choice(NamedTuple):
    """The most complete folder."""

    chosen: Survivor
    why: str
    rejected: tuple[Rejected, ...]
    certain_end: int
    """Everything before this offset is certain."""
    end: int
    """Everything from `certain_end` up to here is probable."""
    absent: tuple[int, ...]
    """The voters whose folders are not here."""
    nothing_lost: bool
    """A majority of the voters' folders is here and sound: start them, and nothing is lost."""
    losses: tuple[str, ...]
    """What may be lost, in sentences."""
    notes: tuple[str, ...]
    """What else somebody should know, in sentences."""


def completeness(survivor: Survivor) -> tuple[int, ...]:
    """Return a key: the greater it is, the more complete is the folder's log."""
    end, journal = survivor.end, survivor.journal
    return (end.epoch, end.log_end, journal.last_epoch, journal.last_index)


def choose(survivors: Sequence[Survivor]) -> Choice:
    """Choose the most complete folder. Raises NoChoiceError."""
    _refuse_strangers(survivors)
    newest = _of_newest_generation(survivors)
    # Of equal logs, rather one that is sound, and one whose history is longer.
    ranked = sorted(
        newest,
        key=lambda each: (
            *completeness(each),
            not each.damage,
            -each.log_start,
            -each.node_id,
        ),
        reverse=True,
    )
    chosen, *others = ranked
    _refuse_contradictions(chosen, others)
    rejected = [Rejected(each, _why_not(each, chosen)) for each in others]
    rejected += [
        Rejected(each, f"it is of generation {each.journal.generation.number}, an earlier one")
        for each in survivors
        if each not in newest
    ]
    older = older_copies([each.journal for each in newest])
    present = {each.journal.directory_id for each in newest}
    voters = chosen.journal.voters
    absent = tuple(n for n, directory in sorted(voters.items()) if directory not in present)
    certain_end = max(each.certain_end for each in newest)
    nothing_lost = _is_sound_majority(chosen, newest, older)
    return Choice(
        chosen=chosen,
        why=_why(chosen, others),
        rejected=tuple(rejected),
        certain_end=min(certain_end, chosen.end.log_end),
        end=chosen.end.log_end,
        absent=absent,
        nothing_lost=nothing_lost,
        losses=() if nothing_lost else tuple(_losses(chosen, newest, absent, older)),
        notes=tuple(_notes(chosen)),
    )


def _refuse_strangers(survivors: Sequence[Survivor]) -> None:
    clusters = {each.journal.cluster_id: each.name for each in survivors}
    if len(clusters) > 1:
        said = ", ".join(f"{name} to {cluster}" for cluster, name in sorted(clusters.items()))
        raise NoChoiceError(
            f"the folders belong to different clusters ({said}): name those of one cluster"
        )


def _of_newest_generation(survivors: Sequence[Survivor]) -> list[Survivor]:
    generations = {each.journal.generation for each in survivors}
    number = max(each.number for each in generations)
    if len([each for each in generations if each.number == number]) > 1:
        raise NoChoiceError(
            f"two generations {number} are here: the cluster was recovered twice, from two "
            "folders. Decide which of them goes on, and name the folders of that one only"
        )
    return [each for each in survivors if each.journal.generation.number == number]


def _refuse_contradictions(chosen: Survivor, others: Sequence[Survivor]) -> None:
    """Refuse folders if one knows to be committed what the chosen log doesn't have.

    A leader has everything that was committed in earlier epochs. So that can only be if a majority
    forgot what it had promised, for example because older copies of its folders were put back.
    """
    for other in others:
        end = other.certain_end
        if end < chosen.log_start:
            continue
        if end > chosen.end.log_end or chosen.hash_at(end) != other.hash_at(end):
            raise NoChoiceError(
                f"{chosen.name} and {other.name} hold different histories before offset {end}, and "
                f"{other.name} knows that its history is committed. That must never happen: keep "
                "both, compare them with `logberg log verify`, and name only the one that you "
                "decide for"
            )


def _is_sound_majority(
    chosen: Survivor, survivors: Sequence[Survivor], older: dict[bytes, str]
) -> bool:
    """Tell whether the folders hold all that was acknowledged.

    There must be a majority of each set of voters that may be in force. A set that no folder here
    knows was never in force then: its majority would share a folder with the majority that is here.
    """
    sound = {
        each.journal.directory_id
        for each in survivors
        if not each.damage and each.journal.directory_id not in older
    }
    sets = chosen.journal.voter_sets
    return bool(sets) and all(
        len(sound.intersection(voters.values())) > len(voters) // 2 for voters in sets
    )


def _why(chosen: Survivor, others: Sequence[Survivor]) -> str:
    end = chosen.end
    place = f"its log ends at offset {end.log_end}, in epoch {end.epoch}"
    if not others:
        return f"it is the only folder; {place}"
    best = others[0]
    if completeness(best) != completeness(chosen):
        return f"{place}, and no other one ends in a later epoch, or later in this one"
    if best.damage and not chosen.damage:
        return f"{place}, as in {best.name}, which is damaged"
    if best.log_start > chosen.log_start:
        return f"{place}, as in {best.name}, whose history begins later"
    return f"{place}; {best.name} holds the same"


def _why_not(other: Survivor, chosen: Survivor) -> str:
    end, best = other.end, chosen.end
    if end.epoch < best.epoch:
        return f"its log ends in epoch {end.epoch}, at offset {end.log_end}"
    if end.log_end < best.log_end:
        return f"its log ends at offset {end.log_end}"
    if other.damage:
        return "it holds the same, and is damaged"
    return "it holds the same"


def _losses(
    chosen: Survivor, survivors: Sequence[Survivor], absent: Sequence[int], older: dict[bytes, str]
) -> list[str]:
    end = chosen.end.log_end
    said = []
    if absent:
        nodes = ", ".join(map(str, absent))
        said.append(
            f"the folders of these voters are not here: {nodes}. What they acknowledged together "
            f"behind offset {end - 1}, and no folder here received, is lost, however much it is"
        )
    elif not chosen.journal.voters:
        said.append(
            "the folder doesn't say who the voters were: it observed. What the voters "
            f"acknowledged behind offset {end - 1} is lost, however much it is"
        )
    for each in survivors:
        if each.damage:
            said.append(f"{each.name} is damaged, and may have held more: {each.damage}")
        if each.journal.directory_id in older:
            said.append(f"{each.name} held more once: {older[each.journal.directory_id]}")
        if each is not chosen and _contradicts(each, chosen):
            said.append(
                f"{each.name} holds other batches from offset {each.ledger_end.log_end} on, which "
                "were probably never committed; they are not taken, and stay in that folder"
            )
    return said


def _contradicts(other: Survivor, chosen: Survivor) -> bool:
    return any(chosen.hash_at(batch.header.end_offset) != batch.hash for batch in other.tail)


def _notes(chosen: Survivor) -> list[str]:
    said = []
    if chosen.log_start:
        said.append(
            f"the history before offset {chosen.log_start} is not in {chosen.name}; if another "
            "folder, an archive or a backup holds it, keep that"
        )
    if chosen.journal.torn:
        said.append(
            f"a crash left an incomplete end, which promised nothing: {chosen.journal.torn}"
        )
    return said
