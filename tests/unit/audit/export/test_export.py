"""What is exported of a log: its changes and attempts that count, one event each."""

import json
from typing import Any

from click.testing import CliRunner

from audit.places.replicas import one_replica
from audit.questions.search import Filter, search
from logberg.cli.command_tree import cli
from metadata.records import AttemptsRecord
from tests.histories import History
from tests.oracles.ocsf.judge import problems
from tests.unit.audit.export.test_cef import read
from tests.unit.audit.nodes import write_node


def exported(folder: Any, *options: str) -> list[str]:
    found = CliRunner().invoke(cli, ["audit", "export", str(folder), *options])
    assert found.exit_code == 0, found.output
    return found.stdout.splitlines()


def test_a_log_as_ocsf_and_cef(tmp_path: Any) -> None:
    write_node(tmp_path / "node", written=History(1).batches(230))
    replica = one_replica(str(tmp_path / "node"))
    settled = list(search(replica, replica.reader(), Filter(outcomes=("settled",)), 0, 2**40))
    attempts = [s for s in settled if isinstance(s.logged.record, AttemptsRecord)]
    assert len(attempts) > 3
    events = [json.loads(line) for line in exported(tmp_path / "node", "--format", "ocsf")]
    assert [problems(event) for event in events] == [[]] * len(events)
    offsets = [event["metadata"]["sequence"] for event in events]
    assert len(set(offsets)) == len(offsets)
    lines = [read(line) for line in exported(tmp_path / "node", "--format", "cef")]
    assert [int(pairs["externalId"]) for _, pairs in lines] == offsets
    only = exported(tmp_path / "node", "--format", "cef", "--what", "attempts")
    assert [int(read(line)[1]["externalId"]) for line in only] == [
        each.logged.offset for each in attempts
    ]
    assert [int(read(line)[1]["cnt"]) for line in only] == [
        each.logged.record.count
        for each in attempts
        if isinstance(each.logged.record, AttemptsRecord)
    ]
    changes = exported(tmp_path / "node", "--format", "cef", "--what", "changes")
    assert len(changes) + len(only) == len(lines)


def test_a_part_of_a_log(tmp_path: Any) -> None:
    write_node(tmp_path / "node", written=History(1).batches(230))
    whole = exported(tmp_path / "node", "--format", "cef")
    some = exported(tmp_path / "node", "--format", "cef", "--from", "100", "--to", "300")
    offsets = [int(read(line)[1]["externalId"]) for line in some]
    assert offsets
    assert min(offsets) >= 100
    assert max(offsets) < 300
    # The first and the last batch may stand there in part.
    assert len(set(some) - set(whole)) <= 2
