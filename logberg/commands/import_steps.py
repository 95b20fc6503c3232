"""What every `logberg import` does with a plan: show it, ask the controllers, say what came of it.

Rule: malformed parts stop an import before it asks anything, unless the caller leaves them out.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from logberg.cli.connection_options import ChangeOptions, ClusterConnection
from logberg.cli.failure import Failure
from logberg.cli.output import facts, note, print_json, say, show, table
from logberg.importing.import_plan import ImportManifest, ImportPlan
from metadata.messages.imports import ImportReply

_RECORDS_PER_S: Final = 5_000
"""A large import may take so much longer than other commands."""
_SHOWN: Final = 20
"""The most malformed nodes or conflicts that an error lists."""


def carry_out(
    plan: ImportPlan,
    manifest: ImportManifest,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
    *,
    skip_malformed: bool,
) -> None:
    """Import a plan, and print what came of it. Raises Failure."""
    if output != "json":
        _show(manifest)
    if manifest.malformed and not skip_malformed:
        raise Failure(
            f"{len(manifest.malformed)} nodes can't be read, and nothing is imported: "
            f"{_listed((f.path, f.why) for f in manifest.malformed)}. Correct them, or leave them "
            "with --skip-malformed"
        )
    reply = _import(plan, manifest, change, cluster)
    if output == "json":
        print_json({"manifest": manifest, "reply": reply})
    if reply.conflict_count:
        raise Failure(
            f"{reply.conflict_count} things are different here, and nothing is imported: "
            f"{_listed((each.name, each.why) for each in reply.conflicts)}"
        )
    if output != "json":
        what = "would write" if reply.dry_run else "imported:"
        where = "" if reply.dry_run or not reply.written else f" (offset {reply.offset})"
        expired = f", {reply.expired} expired" if reply.expired else ""
        say(f"{what} {reply.written} records; {reply.same} are here already{expired}{where}")


def _import(
    plan: ImportPlan, manifest: ImportManifest, change: ChangeOptions, cluster: ClusterConnection
) -> ImportReply:
    """Ask the controllers. The log's reason says from where, also if the caller gives one."""
    reason = f"import of {manifest.source} at revision {manifest.revision}"
    given = msgspec.structs.replace(
        change, reason=f"{reason}: {change.reason}" if change.reason else reason
    )
    return _patient(cluster, plan).ask(
        lambda client: client.import_records(
            plan.records,
            manifest.source,
            manifest.revision,
            tokens_above=manifest.newest_token,
            on_part=_say_part,
            **given.arguments(),
        )
    )


def _patient(cluster: ClusterConnection, plan: ImportPlan) -> ClusterConnection:
    """Return the connection with more time for a large plan."""
    more_s = len(plan.records) / _RECORDS_PER_S
    return msgspec.structs.replace(cluster, deadline_s=cluster.deadline_s + more_s)


def _say_part(sent: int, parts: int) -> None:
    note(f"{sent} of {parts} parts are with the controllers; nothing is written yet")


def _show(manifest: ImportManifest) -> None:
    show(
        facts(
            [
                ("source", manifest.source),
                ("revision", manifest.revision),
                *([("as", manifest.consistency)] if manifest.consistency else []),
                *([("tokens above", manifest.newest_token)] if manifest.newest_token else []),
                *([("cluster id", manifest.cluster_id)] if manifest.cluster_id else []),
                ("nodes", manifest.nodes),
            ]
        ),
        "",
        table(["records", "count"], [[n, count] for n, count in manifest.records.items()]),
    )
    reasons = Counter(each.why for each in manifest.left)
    if reasons:
        first: dict[str, str] = {}
        for each in manifest.left:
            first.setdefault(each.why, each.path)
        rows = [[count, first[why], why] for why, count in reasons.items()]
        show("", table(["left", "such as", "why"], rows))
    for each in (*manifest.notes, *manifest.malformed):
        note(f"{each.path}: {each.why}")


def _listed(findings: Iterable[tuple[str, str]]) -> str:
    every = [f"{what}: {why}" for what, why in findings]
    more = f"; and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return "; ".join(every[:_SHOWN]) + more
