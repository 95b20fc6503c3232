"""Hypothesis takes as long as it needs: on a busy machine an example may be slow.

Rule: `deadline` and `too_slow` are set here and nowhere else. A test only sets its `max_examples`.
In CI the parent is Hypothesis' own profile `ci`, so examples there are the same in each run.

`make test` gives whole files to two workers. The files that take longest begin first: a long file
that begins last keeps one worker busy while the other has nothing to do.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

LONGEST_FIRST = (
    "simulation/test_seeds.py",
    "mutants/test_mutants.py",
    "docs/test_how_to.py",
    "simulation/cases/test_cases.py",
    "simulation/test_targeted_faults.py",
    "power/test_power_cuts.py",
    "crashpoints/test_crash_points.py",
    "degraded/test_ages.py",
    "simulation/test_drawn_operations.py",
    "unit/image/test_topics_loading.py",
    "packaging/test_wheel.py",
    "simulation/test_reruns.py",
    "unit/audit/report/test_report_command.py",
    "docs/test_audit_pages.py",
    "audit_sql/test_fold_mutants.py",
    "audit_sql/test_sql.py",
    "audit_sql/test_queries.py",
    "process/test_loads_at_the_door.py",
    "process/test_backups.py",
    "process/test_mixed_versions.py",
    "process/test_voters.py",
    "process/test_bad_starts.py",
    "process/test_coordination_suite.py",
    "process/test_bad_brokers.py",
    "process/test_standby_heartbeats.py",
    "process/test_up.py",
    "process/test_held_commands.py",
    "process/test_import.py",
    "simulation/test_bridging.py",
    "coordination/test_memory.py",
    "coordination/test_memory_storage.py",
    "coordination/test_seen_faults.py",
    "verifier/test_tampering.py",
    "model/test_model.py",
    "unit/audit/findings/test_log_findings.py",
    "report/test_docs.py",
    "report/test_console_in_browser.py",
    "process/test_console_of_cluster.py",
    "unit/audit/index/test_index.py",
    "unit/audit/index/test_opening.py",
    "crashpoints/test_real_processes.py",
    "unit/snapshots/test_loading.py",
    "unit/audit/questions/test_state.py",
    "simulation/test_answers.py",
    "simulation/test_put_backs.py",
    "flips/test_flips.py",
    "docs/test_current.py",
    "simulation/test_quorum_scenarios.py",
    "properties/test_generated_histories.py",
    "simulation/test_generated_kinds.py",
    "unit/audit/generated/test_generated_facts.py",
    "unit/audit/generated/test_generated.py",
    "properties/test_who_and_history.py",
    # Spark, which runs alone.
    "spark/test_pipeline.py",
    "spark/test_pipeline_harms.py",
    "spark/test_engines.py",
    "spark/test_submit.py",
    "spark/test_many_histories.py",
    "spark/test_installed.py",
    "spark/test_streaming_source.py",
    "spark/test_java.py",
    "spark/test_source.py",
    "spark/test_state.py",
    "spark/test_jobs.py",
)
"""Files that take longer than about 10 s. The others follow, those with the most tests first."""
TESTS = Path(__file__).parent

settings.register_profile(
    "logberg",
    settings(),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("logberg")

# Controllers that tests start as processes compare what they encode (ADR 0045).
os.environ["LOGBERG_COMPARE_RECORDS"] = "1"

# Whoever runs the tests in the background of a shell leaves them SIGINT ignored, and the commands
# that they start would inherit that. They are to end at Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def longest_first(files: Iterable[Path]) -> list[Path]:
    """Each file once; `files` has one entry for each test."""
    known = {TESTS / name: place for place, name in enumerate(LONGEST_FIRST)}
    tests = Counter(files)
    return sorted(tests, key=lambda file: (known.get(file, len(known)), -tests[file]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without this option xdist has an order of its own: by the number of tests."""
    if not config.getoption("loadscopereorder", True):
        order = longest_first(item.path for item in items)
        place = {file: number for number, file in enumerate(order)}
        items.sort(key=lambda item: place[item.path])
