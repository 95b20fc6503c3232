"""The part of docs/safety.md that shows what was run: a section for each kind of evidence.

Rule: every figure comes out of `pieces.summed`. A kind without a piece has its section as well,
which says that it was not run yet, and how to run it.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from tests.evidence.commands import COMMANDS
from tests.evidence.histogram import histogram
from tests.evidence.markdown import (
    NOT_RUN,
    code,
    duration,
    folded,
    none_or_loud,
    number,
    short,
    table,
)
from tests.evidence.pieces import Piece, percentiles, summed

FAILED_SHOWN = 20


def what_was_run(pieces: Sequence[Piece]) -> str:
    """All sections."""
    parts = ["## What was run\n", sources(pieces)]
    for what, (title, section) in SECTIONS.items():
        found = [piece for piece in pieces if piece.what == what]
        command = COMMANDS[what]
        parts.append(f"### {title}\n")
        parts.append(section(found) if found else f"**{NOT_RUN}.**\n")
        parts.append(f"Again: `{command.again}`{f' ({command.note})' if command.note else ''}\n")
    return "\n".join(parts)


def sources(pieces: Sequence[Piece]) -> str:
    """Which commits the figures are of."""
    if not pieces:
        return f"Nothing yet: **{NOT_RUN}**.\n"
    by: defaultdict[tuple[str, str], list[Piece]] = defaultdict(list)
    for piece in pieces:
        by[piece.commit, piece.python].append(piece)
    rows = []
    for (commit, python), found in sorted(by.items(), key=lambda one: one[1][0].date):
        days = sorted({piece.date for piece in found})
        took = duration(sum(piece.took_s for piece in found))
        said = ", ".join(dict.fromkeys(piece.what for piece in found))
        short_commit = commit[:12] + ("+dirty" if commit.endswith("+dirty") else "")
        rows.append(
            (f"`{short_commit}`", python, " to ".join({days[0]: 0, days[-1]: 0}), said, took)
        )
    head = ("commit", "Python", "days", "what", "took")
    return table(head, rows, right=(4,))


def _failed(total: dict[str, Any]) -> str:
    lines = [str(line) for line in total.get("failed", [])]
    if not lines:
        return ""
    shown = lines[:FAILED_SHOWN]
    more = [f"… and {len(lines) - len(shown)} more"] if len(lines) > len(shown) else []
    return f"**{len(lines)} failed:**\n\n" + code("\n".join([*shown, *more]))


def _seeds(pieces: Sequence[Piece]) -> str:
    total = summed(pieces, "seeds")
    by: defaultdict[tuple[str, str], list[Piece]] = defaultdict(list)
    for piece in pieces:
        by[piece.figures["simulator"], piece.figures["kind"] or "by number"].append(piece)
    rows = []
    for (simulator, kind), found in sorted(by.items()):
        part = summed(found, "seeds")
        rows.append(
            (
                simulator,
                kind,
                number(part["count"]),
                none_or_loud(part["violations"]),
                duration(part.get("simulated_s", 0)),
                short(part.get("events", 0)),
                _ranges(part["ranges"]),
            )
        )
    rows.append(
        (
            "**all**",
            "",
            f"**{number(total['count'])}**",
            none_or_loud(total["violations"]),
            f"**{duration(total.get('simulated_s', 0))}**",
            short(total.get("events", 0)),
            "",
        )
    )
    head = ("simulator", "kind", "seeds", "violations", "simulated", "events", "which")
    parts = [table(head, rows, right=(2, 3, 4, 5)), _failed(total)]
    for name, title in (("checked", "What was checked"), ("faults", "Faults that struck")):
        counts = total.get(name, {})
        ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
        counted = table(
            ("what", "times"), ((_plain(what), number(n)) for what, n in ranked), right=(1,)
        )
        if ranked:
            parts.append(folded(f"{title}: {number(sum(counts.values()))}", counted))
    return "\n".join(part for part in parts if part)


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _ranges(ranges: Sequence[Any]) -> str:
    """Seeds that follow each other are one range."""
    joined: list[list[int]] = []
    for one in sorted(ranges, key=lambda one: one.first):
        if joined and joined[-1][1] == one.first:
            joined[-1][1] = one.end
        else:
            joined.append([one.first, one.end])
    return ", ".join(f"{first:,} to {end - 1:,}" for first, end in joined)


def _crash_points(pieces: Sequence[Piece]) -> str:
    steps = sorted({step for piece in pieces for step in piece.figures.get("by_step", {})})
    by: defaultdict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        by[piece.figures["role"]].append(piece)
    parts = [(role, summed(found, "crash points")) for role, found in sorted(by.items())]
    total = summed(pieces, "crash points")
    rows = [
        (
            role,
            number(part["points"]),
            none_or_loud(part["violations"]),
            *(number(part.get("by_step", {}).get(step, 0)) for step in steps),
        )
        for role, part in [*parts, ("**all**", total)]
    ]
    head = ("who is killed", "points", "violations", *(f"at {step}" for step in steps))
    return "\n".join((table(head, rows, right=range(1, len(head))), _failed(total)))


def _power_cuts(pieces: Sequence[Piece]) -> str:
    total = summed(pieces, "power cuts")
    return (
        f"Power was cut {number(total['cuts'])} times over {number(total['acknowledged'])} "
        f"acknowledged changes; violations: {none_or_loud(total['violations'])}.\n"
    )


def _flips(pieces: Sequence[Piece]) -> str:
    by: defaultdict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        by[piece.figures["file"]].append(piece)
    parts = [(file, summed(found, "flips")) for file, found in sorted(by.items())]
    parts.append(("**all**", summed(pieces, "flips")))
    rows = [
        (
            file,
            number(part["bytes"]),
            number(part["flips"]),
            none_or_loud(part["silent"], "silent"),
            number(part.get("detected", 0)),
            number(part.get("harmless", 0)),
        )
        for file, part in parts
    ]
    head = ("file", "bytes", "flips", "silent", "detected", "content unchanged")
    verdicts: dict[str, int] = parts[-1][1].get("how", {})
    how = sorted(verdicts.items(), key=lambda one: (-one[1], one[0]))
    told = table(("what was said", "flips"), ((what, number(n)) for what, n in how), right=(1,))
    counted = table(head, rows, right=range(1, len(head)))
    return "\n".join([counted, *([folded("What was said of them", told)] if how else [])])


def _kills(pieces: Sequence[Piece]) -> str:
    total = summed(pieces, "kills")
    wrong = ("missing", "doubled", "misplaced", "fenced")
    kinds = ", ".join(f"{kind} {number(n)}" for kind, n in total.get("by_kind", {}).items())
    lines = [
        f"{number(total['kills'])} leaders in office were killed under load"
        f"{f' (turns by kind: {kinds})' if kinds else ''}; {number(total['acknowledged'])} changes "
        "were acknowledged. Afterwards, on every controller: "
        + ", ".join(f"{name} {none_or_loud(total[name])}" for name in wrong if name in total)
        + ".\n"
    ]
    lines += [f"**{problem} !**\n" for problem in total.get("unsound", [])]
    for name, what in (
        ("samples_ms", "From SIGKILL to the next commit that a client was told of"),
        ("paused_ms", "From SIGSTOP, of which nothing but silence tells, to the next commit"),
        ("second_ms", "A second kill before the first is back, so without a majority meanwhile"),
    ):
        samples = total.get(name, [])
        if samples:
            at = percentiles(samples)
            said = ", ".join(f"{q} {number(round(ms))} ms" for q, ms in at.items())
            lines += [f"{what}: **{said}**.\n", code(histogram(samples))]
    return "\n".join(lines)


def mutants_of(pieces: Sequence[Piece]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the mutants that were killed, by name, and those that ever survived."""
    total = summed(pieces, "mutants")
    survivors = list(dict.fromkeys(total.get("survivors", [])))
    killed = {one["name"]: one for one in total.get("mutants", []) if one["name"] not in survivors}
    return killed, survivors


def _mutants(pieces: Sequence[Piece]) -> str:
    killed, survivors = mutants_of(pieces)
    rows = [
        (one["name"], str(one["promise"]), str(one["killed_by"]), _sentence(str(one["says"])))
        for one in killed.values()
    ]
    alive = f"**{len(survivors)} survived: {', '.join(survivors)}**"
    return (
        f"{len(killed) + len(survivors)} builds in each of which one protection is switched off; "
        f"{len(killed)} were killed, {alive if survivors else 'none survived'}.\n\n"
        + folded(
            "Each mutant and what kills it",
            table(("without it", "breaks", "killed by", "what was said"), rows),
        )
    )


def _sentence(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= 120 else line[:119] + "…"
    return f"`{line.replace('`', chr(39))}`" if line else ""


def _model(pieces: Sequence[Piece]) -> str:
    rows = []
    rejected: dict[str, str] = {}
    for piece in pieces:
        found = piece.figures
        rows.append(
            (
                str(found["spec"]),
                str(found.get("bounds", "")),
                number(found["states"]),
                number(found.get("distinct", 0)),
                number(found.get("depth", 0)),
                ", ".join(map(str, found["invariants"])),
            )
        )
        rejected |= {m["name"]: m["invariant"] for m in found.get("mutants_rejected", [])}
    head = ("model", "bounds", "states", "distinct", "depth", "invariants that hold")
    parts = [table(head, rows, right=(2, 3, 4))]
    if rejected:
        parts.append(f"Mutants of the model, each rejected ({len(rejected)}):\n")
        parts.append(table(("mutant", "broken invariant"), sorted(rejected.items())))
    return "\n".join(parts)


def _replays(pieces: Sequence[Piece]) -> str:
    total = summed(pieces, "replays")
    pythons = ", ".join(dict.fromkeys(total.get("pythons", [])))
    hashes = ", ".join(dict.fromkeys(map(str, total.get("hash_seeds", []))))
    return (
        f"{number(total['seeds'])} runs were repeated on Python {pythons} with PYTHONHASHSEED "
        f"{hashes}; runs that differed: {none_or_loud(total['different'])}.\n"
    )


SECTIONS: dict[str, tuple[str, Callable[[Sequence[Piece]], str]]] = {
    "seeds": ("Simulated clusters", _seeds),
    "crash points": ("Crash points on real files", _crash_points),
    "power cuts": ("Power cuts on real processes", _power_cuts),
    "flips": ("Flipped bits", _flips),
    "kills": ("Real leaders, killed under load", _kills),
    "mutants": ("Mutants", _mutants),
    "model": ("The model", _model),
    "replays": ("The same seed elsewhere", _replays),
}
