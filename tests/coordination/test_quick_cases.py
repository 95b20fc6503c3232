"""etcd and Consul pass the suite's quick cases. `make conformance` runs all cases.

Rule: they run with LOGBERG_SERVERS=1, which allows to build and start the servers.
"""

import importlib

import pytest

from coordination.testing.case import CaseVerdict, capabilities_of, run_case
from coordination.testing.cases import all_cases
from coordination.testing.store import CannotStartError

pytestmark = [pytest.mark.process, pytest.mark.slow]

QUICK = {
    *("S1", "S3", "S6", "S11", "G1", "G2", "G4", "G5", "G7", "G9", "G12", "G14"),
    *("E1", "E3", "E4", "E8", "E13", "E16", "F1", "F2", "F3", "F4"),
    *("K2", "K3", "K4", "K5", "K6", "K7", "K8", "K9", "K10", "K11", "K12", "K13"),
    *("K15", "K16", "K17", "W1", "W2", "W4", "W7", "W8", "L2", "L5", "L10"),
}


@pytest.mark.parametrize("name", ["etcd", "consul"])
async def test_quick_cases_pass(name):
    module = importlib.import_module(f"tests.coordination.servers.{name}")
    try:
        async with module.open_store() as store:
            declared = await capabilities_of(store)
            for case in all_cases():
                if case.name in QUICK:
                    outcome = await run_case(case, store, declared)
                    assert outcome.verdict is CaseVerdict.PASSED, (case.name, outcome.reason)
    except CannotStartError as error:
        pytest.skip(str(error))
