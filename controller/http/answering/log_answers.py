"""Answers who reads the log: its files, its entries, and what proves them."""

from controller.http.archive_runs import ArchiveRuns
from controller.http.call import Answers, Call
from controller.http.resource_watch import ResourceWatch
from controller.http.segment_ranges import SegmentRanges
from controller.http.snapshot_ranges import SnapshotRanges
from controller.http.transparency import Transparency
from controller.http.watch import Watch
from metadata.errors import LogbergError
from runtime.http.requests import Reply


def log_answers(
    snapshots: SnapshotRanges,
    segments: SegmentRanges,
    archive_runs: ArchiveRuns,
    transparency: Transparency,
    watch: Watch,
    resource_watch: ResourceWatch,
) -> Answers:
    """Return the table."""

    def list_snapshots(call: Call) -> None:
        call.answer(snapshots.listed(call.request))

    def read_snapshot(call: Call) -> None:
        call.on_reply(snapshots.read(call.request, call.arguments["id"]))

    def list_segments(call: Call) -> None:
        call.answer(segments.listed(call.request))

    def read_segment(call: Call) -> None:
        def reply(answer: Reply | LogbergError) -> None:
            if isinstance(answer, LogbergError):
                call.refuse(answer)
            else:
                call.on_reply(answer)

        segments.read(call.request, call.arguments["base"], reply)

    def run_archive(call: Call) -> None:
        archive_runs.handle(call.request, call.answer)

    def read_log(call: Call) -> None:
        watch.read(call.request, call.answer_later)

    def watch_resource(call: Call) -> None:
        resource_watch.read(call.request, call.watch_rights, call.answer)

    def read_signed_head(call: Call) -> None:
        call.on_reply(transparency.head())

    def read_tile(call: Call) -> None:
        call.on_reply(transparency.tile(call.arguments["path"]))

    def make_proof(call: Call) -> None:
        transparency.proof(call.request, call.arguments["offset"], call.answer)

    return {
        "list_snapshots": list_snapshots,
        "read_snapshot": read_snapshot,
        "list_segments": list_segments,
        "read_segment": read_segment,
        "run_archive": run_archive,
        "read_log": read_log,
        "watch_resource": watch_resource,
        "read_signed_head": read_signed_head,
        "read_tile": read_tile,
        "make_proof": make_proof,
    }
