"""What a step brings: topics and families that differ from the step before."""

import pytest

from logberg.bridge.source_state import FAMILIES, SourceState, source_state, step_between
from logberg.importing.source_error import SourceError
from tests.unit.logberg.importing.trees import kafka_tree


def state(**changed: str | None) -> SourceState:
    """Return what the tree says, with changed nodes; `__` stands for a slash."""
    nodes = {"/" + path.replace("__", "/"): data for path, data in changed.items()}
    return source_state(kafka_tree(nodes), 7)


def test_the_first_step_brings_everything() -> None:
    after = state()
    step = step_between(None, after)
    assert step.complete == FAMILIES
    assert len(step.records) == len(after.records())
    assert {each.broker_id for each in step.brokers or ()} == {0, 1, 2}
    assert "orders" in after.topics
    assert after.cluster_id


def test_nothing_new_is_no_step() -> None:
    assert not step_between(state(), state())


def test_a_changed_topic_comes_alone_and_whole() -> None:
    step = step_between(state(), state(config__topics__orders='{"config":{"retention.ms":"9"}}'))
    assert step.complete == ()
    assert step.brokers is None
    assert {type(each).__name__ for each in step.records} == {
        "TopicRecord",
        "ConfigRecord",
        "PartitionRecord",
    }
    assert all(
        getattr(each, "name", "orders") in ("orders", "retention.ms") for each in step.records
    )


def test_a_changed_family_comes_whole() -> None:
    step = step_between(state(), state(latest_producer_id_block=None))
    assert step.complete == ("producerIds",)
    assert step.records == ()


def test_a_topic_that_waits_for_its_deletion_is_gone() -> None:
    step = step_between(state(), state(admin__delete_topics__orders=""))
    assert step.topics_gone == ("orders",)


def test_a_broker_that_comes_or_goes_is_a_step() -> None:
    step = step_between(state(), state(brokers__ids__2=None))
    assert {each.broker_id for each in step.brokers or ()} == {0, 1}
    assert step.records == ()


@pytest.mark.parametrize(
    ("path", "data"),
    [("config__topics__orders", "{"), ("brokers__ids__1", "{"), ("brokers__ids__x", "{}")],
)
def test_a_node_that_cannot_be_read_is_named(path: str, data: str) -> None:
    with pytest.raises(SourceError, match=path.replace("__", "/")):
        state(**{path: data})
