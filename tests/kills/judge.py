"""After the kills: is everything that was acknowledged in every log, once, at its offset?

Rule: each controller's ledger is read by itself. The judge uses only what clients were told and
what the ledgers hold. `audit.questions.agreement` checks that the ledgers are sound and agree.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from audit.places.replicas import one_replica, open_all
from audit.questions.agreement import agree
from audit.reading.dump import dump
from metadata.uuids import uuid_text
from tests.kills.load import Acknowledged


class Ledger(NamedTuple):
    """What one controller's log holds of requests and epochs."""

    name: str
    requests: Mapping[str, Sequence[tuple[int, int]]]
    """End offset and epoch of each batch that bears a request id."""
    began_ms: Mapping[int, int]
    """When each epoch wrote its first batch."""
    begin: int
    end: int


class Verdict(NamedTuple):
    """What was found. Lists name what is wrong, and are empty."""

    missing: list[str]
    doubled: list[str]
    misplaced: list[str]
    unsound: list[str]
    fenced: int

    @property
    def problems(self) -> list[str]:
        """All that is wrong, in words."""
        fenced = [f"{self.fenced} brokers were fenced"] if self.fenced else []
        return [*self.missing, *self.doubled, *self.misplaced, *self.unsound, *fenced]


def read_ledger(folder: Path) -> Ledger:
    """Read one controller's log."""
    requests: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    began_ms: dict[int, int] = {}
    reader = one_replica(str(folder)).reader()
    end = reader.log_start
    for batch in reader.batches(None, None):
        header = batch.header
        end = header.base_offset + header.count
        began_ms.setdefault(header.epoch, header.timestamp_ms)
        if header.provenance.request_id:
            requests[uuid_text(header.provenance.request_id)].append((end, header.epoch))
    return Ledger(folder.name, requests, began_ms, reader.log_start, end)


def held_against(
    acknowledged: Iterable[Acknowledged], ledgers: Iterable[Ledger]
) -> tuple[list[str], list[str], list[str]]:
    """Return what is missing, what is there more than once, and what is at another offset."""
    missing, doubled, misplaced = [], [], []
    told = list(acknowledged)
    for ledger in ledgers:
        for one in told:
            found = ledger.requests.get(one.request_id, ())
            where = f"{ledger.name}: request {one.request_id}, told at offset {one.offset}"
            if not found:
                missing.append(f"{where}, is missing")
            elif len(found) > 1:
                doubled.append(f"{where}, stands there {len(found)} times: {list(found)}")
            elif found[0] != (one.offset, one.epoch):
                misplaced.append(
                    f"{where} of epoch {one.epoch}, is at {found[0][0]} of epoch {found[0][1]}"
                )
    return missing, doubled, misplaced


def fenced_below(folder: Path, offset: int) -> int:
    """How many brokers a log says were fenced before an offset."""
    return sum(
        record["data"].get("fenced") == "FENCE"
        for batch in dump(one_replica(str(folder)).reader(), None, offset)
        for record in batch["records"]
        if record["type"] == "BROKER_REGISTRATION_CHANGE_RECORD"
    )


def judge(
    acknowledged: Sequence[Acknowledged], folders: Sequence[Path], end: int
) -> tuple[Verdict, Ledger]:
    """Judge the folders of all controllers, after they ended; return one of the ledgers too.

    `end`: where the log was, on all of them, before the processes were asked to stop. A broker
    that stops is fenced as well, and who stops first does not hear of that.
    """
    verified = agree(open_all(map(str, folders)))
    unsound = [f"verify: {verified.problem or verified}"] if not verified.ok else []
    sound = [folder for folder, log in zip(folders, verified.logs, strict=True) if log.report.ok]
    ledgers = [read_ledger(folder) for folder in sound]
    assert ledgers, unsound
    unsound += [f"{one.name}: its log begins at {one.begin}" for one in ledgers if one.begin]
    unsound += [
        f"{one.name}: its log ends at {one.end}, before {end}" for one in ledgers if one.end < end
    ]
    # The ledgers are equal, or it was said: one of them tells of the brokers.
    fenced = fenced_below(sound[0], end)
    return Verdict(*held_against(acknowledged, ledgers), unsound, fenced), ledgers[0]
