"""What the errors of coordination carry, in this process and in another one."""

import pickle

import pytest

from coordination import backend, errors
from coordination.types import Member, Record, Revision, SessionId, Token

Kind = type[errors.CoordinationError]


def all_classes(root: Kind) -> list[Kind]:
    return [root, *(c for sub in root.__subclasses__() for c in all_classes(sub))]


RECORD = Record("k", b"v", Revision(3), Revision(5), 2)
MEMBER = Member("a", b"data", Token(7), SessionId("s"))
CARRIED: dict[Kind, dict] = {
    errors.StepRefused: {"index": 2},
    errors.KeyExists: {"record": RECORD, "index": 0},
    errors.KeyMissing: {"index": 1},
    errors.RevisionMismatch: {"current": Revision(4), "index": None},
    errors.Fenced: {"current_token": Token(8), "index": 3},
    errors.MemberExists: {"member": MEMBER},
    errors.ValueTooLarge: {"limit": 1000},
    errors.Compacted: {"oldest": Revision(9)},
    errors.NotSupported: {"capability": "txn"},
    backend.EntryExists: {
        "entry": backend.ResourceEntry("a", b"", SessionId("s"), Token(1), Revision(1), True)
    },
}
"""A row for each class that carries more than its message."""


@pytest.mark.parametrize("kind", all_classes(errors.CoordinationError), ids=lambda k: k.__name__)
def test_an_error_survives_pickling(kind) -> None:
    carried = CARRIED.get(kind, {})
    again = pickle.loads(pickle.dumps(kind("what happened", **carried)))
    assert type(again) is kind
    assert str(again) == "what happened"
    assert vars(again) == carried
    assert again.outcome == kind.outcome


def test_only_a_lost_reply_leaves_the_outcome_open() -> None:
    kinds = all_classes(errors.CoordinationError)
    assert {k for k in kinds if k.outcome == "unknown"} == {errors.OutcomeUnknown}
    assert {k for k in kinds if k.retryable} == {
        errors.Unavailable,
        errors.DeadlineExceeded,
        errors.OutcomeUnknown,
    }
