"""From replicas to facts: verifies the replicas first, then prepares their history.

Rule: a damaged log gets a report too, because that is when people need one. The rows come from the
sound replicas; if none is sound, from the part before the first bad place. The page says so first.
The history is read when the page is made.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from audit.embedded import run_job
from audit.findings.rule_files import builtin_rules
from audit.findings.rules import RuleSet
from audit.places.replicas import NoLogError, Replica
from audit.questions.log_replay import KnownReplays
from audit.questions.verification import verify_replica
from audit.reading.feed import Question, longest
from audit.reading.moments import offset_of
from audit.report.facts import Facts, VerifiedReplica, VerifiedReplicas
from audit.report.history import LogHistory
from audit.report.period import Period
from audit.report.words import DAY_MS, counted, number
from ledger.reader import LedgerReader

OnProgress = Callable[[str, int, int], None]
"""Called with the name of the work, how far it is, and where it ends."""
_HASH_BYTES = 32


class Wanted(NamedTuple):
    """What was asked for."""

    from_moment: str | None
    to_moment: str | None
    title: str | None
    made_ms: int
    heads: tuple[tuple[int, bytes], ...] = ()
    """Offsets and chain hashes that were written down earlier."""
    where: str = ""
    """The log, as it was named."""
    timelines: tuple[str, ...] = ()
    """Things whose timelines were asked for."""
    rules: RuleSet | None = None
    """What makes a finding; None: the built-in rules."""


def gather(replicas: Sequence[Replica], wanted: Wanted, on_progress: OnProgress) -> Facts:
    """Verify the replicas and prepare the history.

    Raises NoLogError, MomentError, LedgerError, CheckpointError, OSError, here and when the history
    is read.
    """
    replays = KnownReplays()
    verified = tuple(_verify(replica, wanted, replays, on_progress) for replica in replicas)
    answering, limit, notes = _believed(replicas, verified)
    reader = longest(answering).reader()
    rules = wanted.rules or builtin_rules()
    end = _end(reader, wanted.to_moment, limit)
    period = _period(reader, wanted.from_moment, end)
    question = Question(answering, end, _telling(on_progress, "reading the log"))
    divergence = [] if _alike(verified) else run_job("divergence", replicas)
    common = min((each.log_end for each in verified if each.log_is_sound), default=0)
    heads = tuple(f"{offset}:{digest.hex()}" for offset, digest in wanted.heads)
    cluster_id = reader.cluster_id
    return Facts(
        title=wanted.title or "Audit report",
        made_ms=wanted.made_ms,
        period=period,
        end_offset=end,
        answered_by=longest(answering).location,
        verified=VerifiedReplicas(
            cluster_id, verified, common, _problem(verified, divergence), heads
        ),
        history=LogHistory(question, rules),
        integrity=[] if _all_sound(verified) else run_job("integrity", replicas),
        divergence=divergence,
        where=wanted.where or longest(answering).location,
        log_start=reader.log_start,
        notes=notes,
        rules=rules.rules,
        timelines=wanted.timelines,
    )


def _all_sound(verified: Sequence[VerifiedReplica]) -> bool:
    """Return whether no log has a bad batch. The job `integrity` then finds nothing."""
    return all(each.log_is_sound for each in verified)


def _alike(verified: Sequence[VerifiedReplica]) -> bool:
    """Return whether all logs are one chain of hashes. The job `divergence` then finds nothing."""
    chains = {(each.history_from, each.log_end, each.head) for each in verified}
    return len(chains) == 1 and _all_sound(verified)


def _telling(on_progress: OnProgress, what: str) -> Callable[[int, int], None]:
    return lambda done, total: on_progress(what, done, total)


def _verify(
    replica: Replica, wanted: Wanted, replays: KnownReplays, on_progress: OnProgress
) -> VerifiedReplica:
    found = verify_replica(
        replica,
        known=dict(wanted.heads),
        keep_going=True,
        replays=replays,
        on_progress=_telling(on_progress, f"verifying {replica.name}"),
    )
    report = found.report
    problems = tuple(map(str, found.problems))
    if report is None:
        return VerifiedReplica(
            replica.name, replica.location, 0, 0, 0, 0, 0, "", log_is_sound=False, problems=problems
        )
    bad = report.first_bad
    return VerifiedReplica(
        replica.name,
        replica.location,
        report.segments,
        report.batches,
        report.records,
        report.log_start,
        report.log_end if bad is None else bad.offset,
        report.head.hex(),
        bad is None,
        problems,
        found.notes,
        found.checkpoints,
        found.proved,
        found.state_hash[:_HASH_BYTES].hex(),
        found.replayed_to,
    )


class _Believed(NamedTuple):
    """Whom to ask, up to where, and what the reader must know of that."""

    replicas: list[Replica]
    limit: int
    notes: tuple[str, ...]


def _believed(replicas: Sequence[Replica], verified: Sequence[VerifiedReplica]) -> _Believed:
    pairs = list(zip(replicas, verified, strict=True))
    sound = [pair for pair in pairs if pair[1].log_is_sound]
    best, most = max(sound or pairs, key=lambda pair: pair[1].log_end)
    if sound:
        left = len(pairs) - len(sound)
        note = f"{counted(left, 'replica')} damaged. The history is that of the others."
        return _Believed([pair[0] for pair in sound], most.log_end, (note,) if left else ())
    note = (
        f"No log is sound. The history ends at offset {number(most.log_end)}, before the first bad "
        f"place of {best.location}."
    )
    return _Believed([best], most.log_end, (note,))


def _end(reader: LedgerReader, moment: str | None, limit: int) -> int:
    """Return where the history ends: at the moment, but not after the verified part."""
    end = limit if moment is None else min(offset_of(reader, moment), limit)
    if end <= reader.log_start:
        raise NoLogError(f"there is nothing to report before offset {end}.")
    return end


def _period(reader: LedgerReader, moment: str | None, end: int) -> Period:
    """Return the time of the report. It begins at midnight unless the log begins later."""
    first_ms = _timestamp(reader, reader.log_start)
    until_ms = _timestamp(reader, end - 1)
    if moment is None:
        return Period(first_ms, until_ms)
    start = min(offset_of(reader, moment), end - 1)
    begin_ms = _timestamp(reader, start) // DAY_MS * DAY_MS
    return Period(max(first_ms, begin_ms), until_ms)


def _timestamp(reader: LedgerReader, offset: int) -> int:
    """Return the time of the batch that holds an offset."""
    for batch in reader.batches(offset, offset + 1):
        return batch.header.timestamp_ms
    raise NoLogError(f"there is no batch at offset {offset}.")


def _problem(verified: Sequence[VerifiedReplica], divergence: Sequence[tuple[Any, ...]]) -> str:
    """Return why replicas that are sound by themselves disagree; empty if they agree."""
    sound = {replica.name for replica in verified if replica.log_is_sound}
    differing = [row for row in divergence if row[1] in sound]
    if not differing:
        return ""
    offset, name, found, agreed = differing[0]
    theirs = f"theirs {agreed[:16]}…" if agreed else "and none has a majority"
    where = f"{name} differs from the others at offset {number(offset)}"
    return f"{where}: its chain hash is {found[:16]}…, {theirs}."
