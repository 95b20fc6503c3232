"""A patch breaks the product in its context and restores it; one that can't apply fails."""

import pytest

from quorum.guard import appends
from quorum.guard.context import NodeContext
from quorum.guard.outbox import Outbox
from tests.mutants.patches import MovedError, Patch, around, edited, gives, patched

IS_DURABLE = "quorum.guard.outbox.Outbox.is_durable"


def test_a_patch_lasts_as_long_as_its_context():
    sound = vars(Outbox)["is_durable"]
    with patched((Patch(IS_DURABLE, gives(True)),)):
        assert Outbox.is_durable(None, 7)
    assert vars(Outbox)["is_durable"] is sound


def test_a_property_stays_one():
    with patched((Patch("quorum.guard.context.NodeContext.may_vote", gives(True)),)):
        assert NodeContext.__new__(NodeContext).may_vote


def test_a_function_is_wrapped_where_it_is_looked_up():
    def one_more(judge, *args):
        return (judge(*args), "once more")

    with patched((Patch("quorum.guard.appends.judge", around(one_more)),)):
        assert appends.judge.__name__ == "judge"
    assert "one_more" not in repr(appends.judge)


def test_text_is_edited_in_place():
    edit = edited(("promised_in == term", "promised_in != term"))
    with patched((Patch("quorum.guard.outbox.Outbox.still_holds", edit),)):
        assert Outbox.still_holds(None, 1, 2)
    assert not Outbox.still_holds(None, 1, 2)


@pytest.mark.parametrize(
    "patch",
    [
        Patch("quorum.guard.nowhere.Outbox.is_durable", gives(True)),
        Patch("quorum.guard.outbox.Nobody.is_durable", gives(True)),
        Patch("quorum.guard.outbox.Outbox.is_gone", gives(True)),
        Patch(IS_DURABLE, edited(("text that is not there", ""))),
        Patch(IS_DURABLE, edited(("self", "this"))),
    ],
)
def test_a_patch_that_misses_says_so_and_breaks_nothing(patch):
    sound = vars(Outbox)["still_holds"]
    first = Patch("quorum.guard.outbox.Outbox.still_holds", gives(True))
    with pytest.raises(MovedError), patched((first, patch)):
        pass
    assert vars(Outbox)["still_holds"] is sound
