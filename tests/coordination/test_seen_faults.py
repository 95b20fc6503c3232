"""Cases fail when a backend, or the client core, is broken: each fault is seen by its case.

Rule: a row breaks one thing and names the case that must fail. A case that passes over its fault is
a defect of the suite.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from coordination.backends.memory import connection
from coordination.backends.memory.connection import CAPABILITIES, MemoryBackend, MemoryWatch
from coordination.backends.memory.store import MemoryStore
from coordination.session import Session
from coordination.testing import seen
from coordination.testing.case import CASES, Case, CaseVerdict, run_case
from coordination.testing.cases import all_cases
from coordination.testing.harness import Harness
from coordination.testing.memory_store import FaultyMemoryStore


class Fault(NamedTuple):
    """One broken thing."""

    name: str
    seen_by: str
    """The case that fails."""
    owner: object
    attribute: str
    broken: Any


def _put_replaces(self: MemoryStore, index: int, step: Any) -> None:
    if step.kind != "put":
        _refuse_operation(self, index, step)


def _forgets_requests(self: MemoryStore, commit: Any) -> Any:
    return _commit(self, replace(commit, request_id=None))


def _ignores_fences(self: MemoryStore, commit: Any) -> Any:
    return _commit(self, replace(commit, fences=()))


def _ignores_checks(self: MemoryStore, commit: Any) -> Any:
    return _commit(self, replace(commit, checks=()))


def _leaves_for_anybody(self: MemoryStore, resource: Any, id_: str, _: Any, __: Any) -> bool:
    queue = self._queues.get(resource, [])
    return self._keep(resource, [place for place in queue if place.id != id_])


def _keeps_entries(self: MemoryStore, session: Any) -> None:
    self._sessions.pop(session, None)


def _expires_early(self: MemoryStore, now_s: float) -> Any:
    return _expire(self, now_s + 0.6)


def _drops_every_third(self: MemoryWatch, batch: Any) -> None:
    if batch.kind == "progress" or batch.revision % 3:
        _put(self, batch)


def _starts_without_state(self: MemoryWatch, after: Any) -> Any:
    return _first(self, self._store.revision if after is None else after)


def _prefix_bleeds(self: MemoryBackend, prefix: str, *, keys_only: bool, page: int) -> Any:
    return _pages(self, prefix.rstrip("/"), keys_only=keys_only, page=page)


_refuse_operation = MemoryStore._refuse_operation
_commit, _expire = MemoryStore.commit, MemoryStore.expire
_put, _first, _pages = MemoryWatch._put, MemoryWatch._first, MemoryBackend.pages

FAULTS = (
    Fault("put replaces a key", "K3", MemoryStore, "_refuse_operation", _put_replaces),
    Fault("request ids are forgotten", "K15", MemoryStore, "commit", _forgets_requests),
    Fault("fences are ignored", "F3", MemoryStore, "commit", _ignores_fences),
    Fault("fences are ignored", "F4", MemoryStore, "commit", _ignores_fences),
    Fault("checks are ignored", "K16", MemoryStore, "commit", _ignores_checks),
    Fault("anybody removes a member", "G5", MemoryStore, "leave", _leaves_for_anybody),
    Fault("a session's end keeps its entries", "S3", MemoryStore, "end_session", _keeps_entries),
    Fault("sessions end early", "S4", MemoryStore, "expire", _expires_early),
    Fault("sessions end early", "E6", MemoryStore, "expire", _expires_early),
    Fault("a watch loses changes", "W4", MemoryWatch, "_put", _drops_every_third),
    Fault("a watch loses changes", "A8", MemoryWatch, "_put", _drops_every_third),
    Fault("a watch begins with changes", "W1", MemoryWatch, "_first", _starts_without_state),
    Fault("a prefix bleeds", "K13", MemoryBackend, "pages", _prefix_bleeds),
    Fault("deadlines are ignored", "S8", Session, "_notice", lambda _: None),
    Fault("deadlines are ignored", "E11", Session, "_notice", lambda _: None),
    Fault(
        "transactions are denied and work",
        "A8",
        connection,
        "CAPABILITIES",
        replace(CAPABILITIES, txn=False),
    ),
    Fault(
        "larger values are promised",
        "A8",
        connection,
        "CAPABILITIES",
        replace(
            CAPABILITIES, max_value_bytes=CAPABILITIES.max_value_bytes // 2, txn_scope="partition"
        ),
    ),
)


@pytest.fixture
def quick_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that waits for what never comes gives up sooner."""
    monkeypatch.setattr(Harness, "patience", 1.5)
    monkeypatch.setattr(seen, "FIRST_EVENT_S", 1.5)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.seen_by}-{fault.name}")
@pytest.mark.usefixtures("quick_patience")
async def test_the_fault_is_seen(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault.owner, fault.attribute, fault.broken)
    outcome = await run_case(_case(fault.seen_by), FaultyMemoryStore(), connection.CAPABILITIES)
    assert outcome.verdict is CaseVerdict.FAILED


def _case(name: str) -> Case:
    return next(case for case in all_cases() if case.name == name)


async def _skips(_: Harness) -> None:
    pytest.skip("a case must not skip itself")


async def _hangs_for_a_capability(_: Harness) -> None:
    raise NotImplementedError


@pytest.mark.parametrize("function", [_skips, _hangs_for_a_capability])
async def test_a_skip_without_a_declaration_fails(function: Callable[[Harness], Any]) -> None:
    case = Case("S0", "A case that skips itself.", function, ())
    outcome = await run_case(case, FaultyMemoryStore(), CAPABILITIES)
    assert outcome.verdict is CaseVerdict.FAILED
    assert "S0" not in CASES
