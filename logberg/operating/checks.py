"""What `doctor` checks in a cluster's report, and what it says to do.

Rule: each check is a function from the report to findings, and says *what to do* next to what it
found. *act* means that something is wrong now or within days. *look* means that it may become
wrong. What a node can't tell, because it is older or does not answer, is a *look* too: silence is
no proof of health.
"""

import math
from collections.abc import Callable, Iterator

from logberg.operating.check_words import CheckState, NodeCheck
from logberg.operating.head_checks import heads
from logberg.operating.node_report import CONTROLLER, ClusterReport, NodeReport
from logberg.operating.samples import Samples

DAY_S = 86_400.0
CLOCKS_LOOK_S, CLOCKS_ACT_S = 0.5, 5.0
FREE_LOOK, FREE_ACT = 0.2, 0.1
FULL_IN_DAYS = 7.0
SYNC_LOOK_S, SYNC_ACT_S = 0.1, 1.0
EXPIRY_LOOK_S, EXPIRY_ACT_S = 14 * DAY_S, 2 * DAY_S
DESCRIPTORS_LOOK = 0.8
DESCRIPTORS_FEW = 4_096


Judge = Callable[[ClusterReport], Iterator[NodeCheck]]


def check_all(report: ClusterReport, now_s: float) -> list[NodeCheck]:
    """Return what every check found. `now_s`: our wall clock, for certificates."""
    judges: tuple[Judge, ...] = (
        nodes,
        versions,
        clocks,
        chain,
        disks,
        syncs,
        lambda found: certificates(found, now_s),
        descriptors,
        access,
        heads,
    )
    return [check for judge in judges for check in judge(report)]


def nodes(report: ClusterReport) -> Iterator[NodeCheck]:
    """Every node answers, one controller is active, and none says that something is wrong."""
    for node in report.nodes:
        if node.samples is None and node.status is None:
            yield NodeCheck(
                "nodes",
                node.name,
                CheckState.ACT,
                node.problem,
                "start it, or see why it can't be reached: docs/runbook.md, no quorum",
            )
        elif node.problem:
            yield NodeCheck(
                "nodes", node.name, CheckState.LOOK, node.problem, "read the node's log"
            )
    known = [node for node in report.controllers if node.status is not None]
    active = [node.name for node in known if node.status is not None and node.status.active]
    if len(active) == 1:
        yield NodeCheck("nodes", active[0], CheckState.OK, "it is the active controller")
    else:
        yield NodeCheck(
            "nodes",
            "cluster",
            CheckState.ACT,
            "no controller is active" if not active else f"{', '.join(active)} are active",
            "a majority must run and reach each other: logberg quorum status --node N on each",
        )
    for node in known:
        assert node.status is not None
        if node.status.note:
            yield NodeCheck(
                "nodes",
                node.name,
                CheckState.ACT,
                node.status.note,
                "docs/runbook.md has a section for each of these sentences",
            )
        for repair in node.status.repairs:
            yield NodeCheck(
                "nodes",
                node.name,
                CheckState.LOOK,
                repair,
                "check the device (SMART, the kernel's log): damage seldom comes once",
            )


def access(report: ClusterReport) -> Iterator[NodeCheck]:
    """Rights are enforced by all controllers, and the first start's administrator is gone."""
    known = {
        node.name: node.status
        for node in report.controllers
        if node.status is not None and node.status.authorization
    }
    if not known:
        return
    said = {status.authorization for status in known.values()}
    if len(said) > 1:
        each = "; ".join(f"{name}: {status.authorization}" for name, status in known.items())
        do = "give all controllers the same setting authorization, and restart them"
        yield NodeCheck("access", "all controllers", CheckState.ACT, each, do)
    elif said != {"on"}:
        yield NodeCheck(
            "access",
            "all controllers",
            CheckState.LOOK,
            f"authorization is {said.pop()}: whoever is let in may administer",
            "grant roles, then switch it on: docs/how-to.md, let people do only what they need",
        )
    else:
        yield NodeCheck("access", "all controllers", CheckState.OK, "every request needs a right")
    for name, status in known.items():
        if status.bootstrap_admin:
            yield NodeCheck(
                "access",
                name,
                CheckState.LOOK,
                f"{status.bootstrap_admin} of the first start may do everything",
                "grant the role admin to people, and take it out of super_users; or say "
                "bootstrap_admin_kept = true",
            )


def versions(report: ClusterReport) -> Iterator[NodeCheck]:
    """All nodes run the same release."""
    found = {node.name: node.status.version for node in report.controllers if node.status}
    for node in report.nodes:
        if node.kind != CONTROLLER and (version := _version(node)) is not None:
            found[node.name] = version
    for broker in report.brokers:
        if broker.software is not None:
            found[f"broker {broker.broker_id}"] = broker.software
    if not found:
        return
    said = sorted(set(found.values()))
    if len(said) == 1:
        yield NodeCheck("versions", "all nodes", CheckState.OK, f"{len(found)} nodes run {said[0]}")
        return
    each = "; ".join(
        f"{version}: {', '.join(name for name, its in found.items() if its == version)}"
        for version in said
    )
    yield NodeCheck(
        "versions",
        "all nodes",
        CheckState.LOOK,
        each,
        "finish the upgrade: docs/how-to.md, upgrade to a new release",
    )


def clocks(report: ClusterReport) -> Iterator[NodeCheck]:
    """The wall clocks agree. Decisions don't rest on them; timestamps and expiries do."""
    ahead = {node.name: node.clock_ahead_s for node in report.nodes if node.samples is not None}
    known = {name: seconds for name, seconds in ahead.items() if seconds is not None}
    if not known:
        return
    first, last = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    apart = known[last] - known[first]
    state = CheckState.OK
    if apart > CLOCKS_LOOK_S:
        state = CheckState.ACT if apart > CLOCKS_ACT_S else CheckState.LOOK
    found = f"the clocks of {len(known)} nodes are within {apart:.2f} s"
    if state is not CheckState.OK:
        found = f"the clock of {last} is {apart:.1f} s ahead of that of {first}"
    do = "" if state is CheckState.OK else "synchronise the clocks (chrony, NTP)"
    yield NodeCheck("clocks", "all nodes", state, found, do)
    from_here = [seconds for seconds in known.values() if abs(seconds) > CLOCKS_ACT_S]
    if len(from_here) == len(known):
        yield NodeCheck(
            "clocks",
            "this machine",
            CheckState.LOOK,
            f"this machine's clock is {abs(from_here[0]):.0f} s off all nodes' clocks",
            "synchronise this machine's clock: request ids carry its time",
        )


def chain(report: ClusterReport) -> Iterator[NodeCheck]:
    """All controllers have the same history, up to the newest batch that all of them have."""
    for node in report.controllers:
        if node.samples is not None and node.samples.value("logberg_state_diverged"):
            yield NodeCheck(
                "chain",
                node.name,
                CheckState.ACT,
                "its state differs from the others'",
                "docs/runbook.md, state diverged",
            )
    points = {node.name: node.chain for node in report.controllers if node.chain is not None}
    hashes = set(points.values())
    if len(hashes) > 1:
        said = "; ".join(
            f"{name}: {point.base_offset} #{point.hash[:12]}" for name, point in points.items()
        )
        yield NodeCheck(
            "chain",
            "all controllers",
            CheckState.ACT,
            f"the batches before offset {report.common_offset} differ: {said}",
            "stop changing things, keep all folders, and run: logberg log verify FOLDER FOLDER …",
        )
    elif len(points) > 1:
        yield NodeCheck(
            "chain",
            "all controllers",
            CheckState.OK,
            f"{len(points)} controllers have one history up to offset {report.common_offset}",
        )


def disks(report: ClusterReport) -> Iterator[NodeCheck]:
    """There is room, and there will be for a week."""
    for node, samples in _figures(report):
        free = samples.value("logberg_disk_free_bytes")
        size = samples.value("logberg_disk_size_bytes")
        if node.kind != CONTROLLER:
            continue
        if free is None or not size:
            yield _unknown("disks", node)
            continue
        days = samples.value("logberg_disk_full_in_days")
        soon = days is not None and days < FULL_IN_DAYS
        state = CheckState.OK
        if free / size < FREE_LOOK or soon:
            state = CheckState.ACT if free / size < FREE_ACT else CheckState.LOOK
        pace = ""
        if days is not None and math.isfinite(days):
            pace = f"; full in {days:.0f} days at the pace of the last day"
        yield NodeCheck(
            "disks",
            node.name,
            state,
            f"{free / 2**30:.1f} of {size / 2**30:.1f} GiB are free ({free / size:.0%}){pace}",
            "" if state is CheckState.OK else "make room: docs/runbook.md, disk full",
        )


def syncs(report: ClusterReport) -> Iterator[NodeCheck]:
    """The disk syncs quickly: every change waits for it on a majority."""
    for node, samples in _figures(report):
        if node.kind != CONTROLLER:
            continue
        worst = samples.quantile("logberg_disk_sync_seconds", 0.99)
        if worst is None:
            yield NodeCheck(
                "syncs",
                node.name,
                CheckState.LOOK,
                "no sync was measured yet",
                "ask again after some changes, or measure a folder: logberg doctor --folder DIR",
            )
            continue
        state = CheckState.OK
        if worst > SYNC_LOOK_S:
            state = CheckState.ACT if worst > SYNC_ACT_S else CheckState.LOOK
        many = samples.count("logberg_disk_sync_seconds")
        yield NodeCheck(
            "syncs",
            node.name,
            state,
            f"99 % of {many:.0f} syncs took at most {worst * 1000:g} ms",
            ""
            if state is CheckState.OK
            else "use a faster disk, or one of its own: docs/runbook.md, slow disk or machine",
        )


def certificates(report: ClusterReport, now_s: float) -> Iterator[NodeCheck]:
    """No certificate that a node uses expires within two weeks."""
    for node, samples in _figures(report):
        for sample in samples.all("logberg_certificate_expiry_seconds"):
            left_s = sample.value - now_s
            state = CheckState.OK
            if left_s < EXPIRY_LOOK_S:
                state = CheckState.ACT if left_s < EXPIRY_ACT_S else CheckState.LOOK
            when = "expired" if left_s <= 0 else f"expires in {left_s / DAY_S:.0f} days"
            yield NodeCheck(
                "certificates",
                node.name,
                state,
                f"its {sample.labels.get('file', '?')} file {when}",
                ""
                if state is CheckState.OK
                else "replace it and send SIGHUP: docs/how-to.md, replace certificates",
            )


def descriptors(report: ClusterReport) -> Iterator[NodeCheck]:
    """Descriptors are left for connections and files."""
    for node, samples in _figures(report):
        open_now, most = samples.value("process_open_fds"), samples.value("process_max_fds")
        if open_now is None or not most:
            yield _unknown("descriptors", node)
            continue
        tight = open_now / most > DESCRIPTORS_LOOK
        few = most < DESCRIPTORS_FEW
        found = f"{open_now:.0f} of {most:.0f} are open"
        do = ""
        if tight or few:
            do = "raise LimitNOFILE (ulimit -n): docs/runbook.md, too many connections"
        yield NodeCheck(
            "descriptors", node.name, CheckState.LOOK if do else CheckState.OK, found, do
        )


def _figures(report: ClusterReport) -> Iterator[tuple[NodeReport, Samples]]:
    for node in report.nodes:
        if node.samples is not None:
            yield node, node.samples


def _version(node: NodeReport) -> str | None:
    if node.samples is None:
        return None
    found = node.samples.all("logberg_build_info")
    return found[0].labels.get("version") if found else None


def _unknown(check: str, node: NodeReport) -> NodeCheck:
    return NodeCheck(
        check,
        node.name,
        CheckState.LOOK,
        "the node doesn't say; it may run an older release",
        "upgrade it, or look on its machine",
    )
