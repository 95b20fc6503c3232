"""The integrity certificate: what was verified, what was found, and what nobody can prove.

Rule: it claims no more than was checked. It says what a hash chain can't show as plainly as what it
can.
"""

from typing import Final, NamedTuple

from audit.report.facts import Facts, Rows, VerifiedReplica, VerifiedReplicas
from audit.report.tabular import Cell, ReportTable, count, missing, table, text
from audit.report.words import counted, listed, number

_ROWS: Final = 100
_PROBLEMS: Final = 20
_NOTES: Final = 20
"""How many notes of each replica are shown."""
VERIFIED: Final = (
    "every frame's length and CRC-32C checksum",
    "the chain: each batch contains the SHA-256 of the one before it, from the first one here",
    "offsets: no gap and no repetition",
    "epochs and times: neither ever falls",
    "snapshots: the bytes of each, and its content against a replay of the log",
    "replicas: the same batches on each, up to the end of the shortest",
)
NOT_PROVED: Final = (
    (
        "That nobody rewrote the end of all copies at once. Only a head that somebody wrote down "
        "earlier, outside of the cluster, shows that. Keep the line above."
    ),
    (
        "That the person behind a request was the principal: the log only says in whose name the "
        "request was accepted."
    ),
    "Which requests were refused: the log holds only accepted ones.",
    "That clocks were right: times are those of the active controller. They never fall.",
    (
        "What clients experienced: “without leader” is what the log says. The cluster notices a "
        "silent broker only after a session (9 s by default)."
    ),
)


class Integrity(NamedTuple):
    """The section."""

    ok: bool
    verdict: str
    sentence: str
    head: str
    """`OFFSET:HASH` to write down; empty if not all sound replicas agree on one."""
    holders: str
    """The replicas that have this head, if not all have it."""
    heads: tuple[str, ...]
    """The heads that were given. If the certificate is sound, all logs contain them."""
    replicas: ReportTable
    findings: ReportTable
    divergence: ReportTable
    not_proved: tuple[str, ...]
    notes: tuple[str, ...]
    """Notes of the verification, by replica."""


def integrity(facts: Facts) -> Integrity:
    """Build the certificate."""
    verified = facts.verified
    findings = _findings(verified, facts.integrity)
    divergence = _divergence(facts.divergence)
    ok = verified.ok and not findings.rows and not divergence.rows
    head = verified.head
    return Integrity(
        ok,
        _verdict(verified, bool(divergence.rows), bool(findings.rows)),
        _sentence(verified),
        f"{head[0]}:{head[1]}" if head else "",
        _holders(verified),
        verified.heads,
        _replicas(verified),
        findings,
        divergence,
        _not_proved(verified),
        tuple(f"{each.name}: {note}" for each in verified.replicas for note in each.notes[:_NOTES]),
    )


def _verdict(verified: VerifiedReplicas, differ: bool, found: bool) -> str:
    damaged = [replica.name for replica in verified.replicas if not replica.ok]
    if damaged:
        return f"Damaged: {listed(damaged)}"
    if verified.problem or differ:
        return "The replicas differ"
    if found:
        return "Findings in the log"
    if len(verified.replicas) > 1:
        return f"Sound: {number(len(verified.replicas))} replicas, one history"
    return "Sound: one replica, an unbroken chain"


def _sentence(verified: VerifiedReplicas) -> str:
    bad = next((r for r in verified.replicas if not r.ok), None)
    if bad is not None:
        return f"{bad.location}: {bad.problems[0]}."
    if verified.problem:
        return verified.problem
    first = verified.replicas[0]
    held = counted(first.batches, "batch", "batches")
    return (
        f"{counted(first.records, 'record')} in {held} from offset {number(first.history_from)} "
        f"were read and checked; the replicas agree up to offset {number(verified.common_offset)}."
        if len(verified.replicas) > 1
        else f"{counted(first.records, 'record')} in {held} from offset "
        f"{number(first.history_from)} were read and checked."
    )


def _holders(verified: VerifiedReplicas) -> str:
    sound = [replica.name for replica in verified.replicas if replica.log_is_sound]
    return "" if len(sound) == len(verified.replicas) else listed(sound)


def _not_proved(verified: VerifiedReplicas) -> tuple[str, ...]:
    more = []
    start = max((replica.history_from for replica in verified.replicas), default=0)
    if start:
        more.append(
            f"What happened before offset {number(start)}: not every replica has the history "
            "from offset 0. A replica without it can fetch it from one that has it."
        )
    if len(verified.replicas) == 1:
        more.append("That other controllers have the same history: only one replica was given.")
    return (*NOT_PROVED, *more)


def _replicas(verified: VerifiedReplicas) -> ReportTable:
    rows = []
    for replica in verified.replicas:
        state = ""
        if replica.state_hash:
            state = f"state at {number(replica.replayed_to)}: {replica.state_hash}"
        rows.append(
            (
                text(replica.name, "name"),
                text("sound") if replica.ok else text("damaged", "bad"),
                count(replica.segments),
                count(replica.batches),
                count(replica.records),
                Cell(f"{number(replica.proved)} of {number(replica.checkpoints)}", None, "num"),
                Cell(
                    f"{number(replica.history_from)} \N{EN DASH} {number(replica.log_end)}",
                    replica.log_end,
                    "num",
                ),
                _head_of(replica, state),
            )
        )
    return table(
        "Replicas that were read, each on its own",
        [
            "Replica",
            "Verdict",
            "#Segments",
            "#Batches",
            "#Records",
            "#Snapshots proved",
            "#Offsets",
            "Head: chain hash at the end",
        ],
        rows,
        filtered=False,
    )


def _head_of(replica: VerifiedReplica, state: str) -> Cell:
    """Return a replica's head. The head of a damaged log can't be trusted, so it has none."""
    if replica.log_is_sound:
        return Cell(replica.head, None, "hash", state)
    return Cell("none: the log is damaged", None, "", state)


def _findings(verified: VerifiedReplicas, rows: Rows) -> ReportTable:
    """Return the problems of each replica, then those of single batches."""
    kept: list[tuple[Cell, ...]] = [
        (text(replica.name, "name"), text(""), text("verify", "bad"), text(problem, "long"))
        for replica in verified.replicas
        for problem in replica.problems[:_PROBLEMS]
    ]
    total = len(kept)
    for replica_name, base_offset, segment, kind, sentence in rows:
        total += 1
        if total <= _ROWS:
            where = Cell(str(base_offset), base_offset, "num mono")
            said = text(f"{segment}: {sentence}", "long")
            kept.append((text(replica_name, "name"), where, text(kind, "bad"), said))
    return table(
        "What is wrong",
        ["Replica", "#Base offset", "Kind", "What was found"],
        kept,
        left_out=missing(total, _ROWS, "findings", "the lowest offsets"),
    )


def _divergence(rows: Rows) -> ReportTable:
    kept = [
        (
            Cell(str(base_offset), base_offset, "num mono"),
            text(replica, "name"),
            text(found, "hash"),
            text(agreed or "no majority", "hash"),
        )
        for base_offset, replica, found, agreed in rows
    ]
    return table(
        "First offset at which each replica differs",
        ["#Base offset", "Replica", "Its hash", "The majority's hash"],
        kept[:_ROWS],
        left_out=missing(len(kept), _ROWS, "replicas", "the lowest offsets"),
        filtered=False,
    )
