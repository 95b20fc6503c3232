"""A case and its answer as lines of words, which Python and the Java program both read.

A case is `STATE | CHANGE`, an answer is `RECORD | STATE AFTER IT`. Words are `name=value` or a bare
name. A word that is absent stands for none, for no change or for the default. Commas divide
numbers. A directory is a letter: U unassigned, L lost, M migrating, and a small letter is a
directory's id. One row of the table:

    replicas=1,2,3 dirs=abU isr=1,2,3 leader=1 | isr=2,3 alive=2,3 | leader=2 isr=2,3

State: replicas, dirs (absent: not tracked), isr, elr, last (last known ELR), removing, adding,
leader, recovering.

Change: isr, replicas, removing, adding, recovery (the target's parts), dir (broker:directory pairs
that change), alive (acceptable leaders), min (effective min ISR), use-elr, elect (the mode), lost
(brokers with an unclean shutdown), default (broker:directory pairs of new replicas; U if absent),
level (metadata.version). In the place of the first four: reassign (to these replicas) or cancel;
then Kafka makes the target by itself, and `reassignments.py` makes ours.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from controller.managers.partition_change import ElectionMode, Rules, Target
from controller.managers.reassignments import _reverted, started
from metadata.image.partition import Partition
from metadata.records import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    LEADER_RECOVERY_STATE_UNTOUCHED,
    NO_LEADER,
    NO_LEADER_CHANGE,
    PartitionChangeRecord,
)

TOPIC: Final = bytes(range(16))
PARTITION: Final = 0
HIGHEST_LEVEL: Final = 33

Ids = tuple[int, ...]

_NAMED: Final = {"U": DIRECTORY_UNASSIGNED, "L": DIRECTORY_LOST, "M": DIRECTORY_MIGRATING}
_LETTERS: Final = {directory: letter for letter, directory in _NAMED.items()}


class Change(NamedTuple):
    """What a manager asks of a partition, and what it knows of the brokers."""

    target: Target = Target()
    alive: Ids = ()
    """The brokers that may lead, sorted."""
    rules: Rules = Rules()
    lost: Ids = ()
    """Brokers with an unclean shutdown."""
    defaults: Mapping[int, bytes] = {}
    """The directories of new replicas, by broker."""
    level: int = HIGHEST_LEVEL
    asked: str = ""
    """`reassign=IDS` or `cancel`, when Kafka is to make the target's assignment by itself."""


class Case(NamedTuple):
    """A partition and a change."""

    partition: Partition
    change: Change


class Answer(NamedTuple):
    """What became of a case."""

    record: PartitionChangeRecord | None
    after: Partition | None
    """The partition behind the record; None where the line has none."""
    error: str = ""
    """The exception, when there is no answer."""


def directory(letter: str) -> bytes:
    """Return the directory that a letter stands for."""
    return _NAMED.get(letter) or bytes(7) + b"\x01" + bytes(7) + letter.encode()


def show_case(case: Case) -> str:
    """Return a case as a line."""
    target, rules = case.change.target, case.change.rules
    words = [*_state_words(case.partition), "|"]
    if case.change.asked:
        words.append(case.change.asked)
    else:
        words += _ids("isr", target.isr)
        words += _ids("replicas", target.replicas)
        words += _ids("removing", target.removing)
        words += _ids("adding", target.adding)
    if target.recovery_state is not None:
        words.append(f"recovery={target.recovery_state}")
    words += _pairs("dir", target.directories)
    words += _ids("alive", case.change.alive or None)
    if rules.min_isr != 1:
        words.append(f"min={rules.min_isr}")
    if rules.elr:
        words.append("use-elr")
    if rules.mode is not ElectionMode.ONLINE:
        words.append(f"elect={rules.mode.name}")
    words += _ids("lost", case.change.lost or None)
    words += _pairs("default", case.change.defaults)
    if case.change.level != HIGHEST_LEVEL:
        words.append(f"level={case.change.level}")
    return " ".join(words)


def show_record(record: PartitionChangeRecord | None) -> str:
    """Return a record as words."""
    if record is None:
        return "none"
    words = []
    if record.leader != NO_LEADER_CHANGE:
        words.append(f"leader={record.leader}")
    words += _ids("isr", record.isr)
    words += _ids("elr", record.eligible_leader_replicas)
    words += _ids("last", record.last_known_elr)
    if record.leader_recovery_state != LEADER_RECOVERY_STATE_UNTOUCHED:
        words.append(f"recovery={record.leader_recovery_state}")
    words += _ids("replicas", record.replicas)
    words += _ids("removing", record.removing_replicas)
    words += _ids("adding", record.adding_replicas)
    if record.directories is not None:
        words.append(f"dirs={_letters(record.directories)}")
    return " ".join(words)


def show_partition(partition: Partition | None) -> str:
    """Return a partition as the words of the answer's second half."""
    assert partition is not None
    epochs = f"epochs={partition.leader_epoch},{partition.partition_epoch}"
    return " ".join((*_state_words(partition), epochs))


def read_case(line: str) -> Case:
    """Return the case that a line shows."""
    state, change = (_words(part) for part in line.split("|"))
    rules = Rules(
        elr="use-elr" in change,
        min_isr=int(change.get("min", "1")),
        mode=ElectionMode[change.get("elect", "ONLINE")],
    )
    target = Target(
        isr=_read_ids(change.get("isr")),
        replicas=_read_ids(change.get("replicas")),
        removing=_read_ids(change.get("removing")),
        adding=_read_ids(change.get("adding")),
        recovery_state=int(change["recovery"]) if "recovery" in change else None,
        directories=_read_pairs(change.get("dir", "")),
    )
    partition = _read_state(state)
    asked = ""
    if "reassign" in change:
        asked = f"reassign={change['reassign']}"
        target = started(partition, _read_ids(change["reassign"]) or ())
    elif "cancel" in change:
        asked, target = "cancel", _reverted(partition, "0", unclean=True)
    return Case(
        partition,
        Change(
            target,
            _read_ids(change.get("alive")) or (),
            rules,
            _read_ids(change.get("lost")) or (),
            _read_pairs(change.get("default", "")),
            int(change.get("level", HIGHEST_LEVEL)),
            asked,
        ),
    )


def read_answer(line: str) -> Answer:
    """Return the answer that a line of the Java program or of the table shows."""
    record_text, _, after_text = line.partition("|")
    words = _words(record_text)
    after = _read_state(_words(after_text)) if after_text.strip() else None
    if "error" in words:
        return Answer(None, None, words["error"])
    return Answer(None if "none" in words else _read_record(words), after)


def _read_record(words: Mapping[str, str]) -> PartitionChangeRecord:
    return PartitionChangeRecord(
        PARTITION,
        TOPIC,
        isr=_read_ids(words.get("isr")),
        leader=int(words.get("leader", NO_LEADER_CHANGE)),
        replicas=_read_ids(words.get("replicas")),
        removing_replicas=_read_ids(words.get("removing")),
        adding_replicas=_read_ids(words.get("adding")),
        leader_recovery_state=int(words.get("recovery", LEADER_RECOVERY_STATE_UNTOUCHED)),
        directories=_read_directories(words["dirs"]) if "dirs" in words else None,
        eligible_leader_replicas=_read_ids(words.get("elr")),
        last_known_elr=_read_ids(words.get("last")),
    )


def _read_state(words: Mapping[str, str]) -> Partition:
    epochs = _read_ids(words.get("epochs", "0,0")) or (0, 0)
    return Partition(
        replicas=_read_ids(words.get("replicas")) or (),
        directories=_read_directories(words.get("dirs", "")),
        isr=_read_ids(words.get("isr")) or (),
        elr=_read_ids(words.get("elr")) or (),
        last_known_elr=_read_ids(words.get("last")) or (),
        removing=_read_ids(words.get("removing")) or (),
        adding=_read_ids(words.get("adding")) or (),
        leader=int(words.get("leader", NO_LEADER)),
        leader_recovery_state=int("recovering" in words),
        leader_epoch=epochs[0],
        partition_epoch=epochs[1],
    )


def _state_words(partition: Partition) -> list[str]:
    words = _ids("replicas", partition.replicas)
    if partition.directories:
        words.append(f"dirs={_letters(partition.directories)}")
    words += _ids("isr", partition.isr or None)
    words += _ids("elr", partition.elr or None)
    words += _ids("last", partition.last_known_elr or None)
    words += _ids("removing", partition.removing or None)
    words += _ids("adding", partition.adding or None)
    if partition.leader != NO_LEADER:
        words.append(f"leader={partition.leader}")
    if partition.leader_recovery_state:
        words.append("recovering")
    return words


def _words(text: str) -> dict[str, str]:
    parts = (word.partition("=") for word in text.split())
    return {name: value for name, _, value in parts}


def _ids(name: str, ids: Ids | None) -> list[str]:
    return [] if ids is None else [f"{name}={','.join(map(str, ids))}"]


def _read_ids(text: str | None) -> Ids | None:
    if text is None:
        return None
    return tuple(map(int, text.split(","))) if text else ()


def _pairs(name: str, pairs: Mapping[int, bytes]) -> list[str]:
    if not pairs:
        return []
    shown = (f"{broker}:{_letters((one,))}" for broker, one in sorted(pairs.items()))
    return [f"{name}={','.join(shown)}"]


def _read_pairs(text: str) -> dict[int, bytes]:
    pairs = (pair.split(":") for pair in text.split(",") if pair)
    return {int(broker): directory(letter) for broker, letter in pairs}


def _letters(directories: Iterable[bytes]) -> str:
    return "".join(_LETTERS.get(one) or chr(one[-1]) for one in directories)


def _read_directories(letters: str) -> tuple[bytes, ...]:
    return tuple(map(directory, letters))
