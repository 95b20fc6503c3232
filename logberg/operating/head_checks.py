"""What `doctor` checks of signed heads: they are witnessed, and nobody contradicts them."""

from collections.abc import Iterator

from logberg.operating.check_words import CheckState, NodeCheck
from logberg.operating.node_report import ClusterReport
from logberg.operating.samples import Sample, Samples

_RUNBOOK = "docs/runbook.md, a log that contradicts a head"


def heads(report: ClusterReport) -> Iterator[NodeCheck]:
    """Signed heads are witnessed, and no log contradicts one."""
    for node in report.nodes:
        if node.samples is None:
            continue
        found, state, do = _of_node(node.samples)
        if found:
            yield NodeCheck("heads", node.name, state, found, do)


def _of_node(samples: Samples) -> tuple[str, CheckState, str]:
    """Return what was found, how it is and what to do; nothing found: no heads here."""
    own = samples.value("logberg_signed_head_contradicted")
    broker = samples.value("logberg_broker_signed_head_contradicted")
    if own or broker:
        found = "the log is not the one whose signed head this node has"
        return found, CheckState.ACT, f"change nothing, and compare: {_RUNBOOK}"
    others = [one.labels.get("witness", "") for one in _set(samples, "contradicting")]
    if others:
        found = f"{', '.join(others)} has another history of this log"
        return found, CheckState.ACT, f"change nothing, and compare: {_RUNBOOK}"
    window = samples.value("logberg_witness_window_seconds")
    waits = samples.value("logberg_signed_head_unwitnessed_seconds")
    if window is None or waits is None:
        if samples.value("logberg_signed_head_batches") is None:
            return "", CheckState.OK, ""
        return "nobody outside keeps the signed heads", CheckState.OK, ""
    failing = [one.labels.get("witness", "") for one in _set(samples, "failing")]
    if waits > window:
        found = f"changes have waited {waits:.0f} s for a witness; {window:.0f} s are the bound"
        return found, CheckState.ACT, "docs/runbook.md, heads are not witnessed"
    if failing:
        found = f"no answer that counts from {', '.join(failing)}"
        return found, CheckState.LOOK, "docs/runbook.md, heads are not witnessed"
    return f"all but the last {waits:.0f} s are witnessed", CheckState.OK, ""


def _set(samples: Samples, what: str) -> list[Sample]:
    return [one for one in samples.all(f"logberg_witness_{what}") if one.value]
