"""At which levels a log for brokers of a version begins."""

import pytest

from logberg.kafka.kafka_error import KafkaError
from logberg.kafka.versions import first_levels_for


@pytest.mark.parametrize(
    ("version", "level"),
    [("4.0.2", 25), ("4.1.2", 27), ("4.2.1", 29), ("4.3.1", 30), ("4.4.0", 30), ("5.0.0-rc1", 30)],
)
def test_the_newest_level_that_its_brokers_read(version, level) -> None:
    assert first_levels_for(version) == {"metadata.version": level}


@pytest.mark.parametrize("version", ["3.9.1", "2.8.0"])
def test_a_version_that_was_never_tried_is_refused(version) -> None:
    with pytest.raises(KafkaError, match=f"Kafka {version} is too old.*4.0 or later"):
        first_levels_for(version)


@pytest.mark.parametrize("version", ["", "4", "latest", "4.x.1", "four.three.one"])
def test_what_is_no_version_is_refused(version) -> None:
    with pytest.raises(KafkaError, match="is no version of Kafka"):
        first_levels_for(version)
