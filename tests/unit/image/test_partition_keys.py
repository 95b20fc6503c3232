"""There is one PartitionKey, and the maps of an image hold its plain form."""

import re
from pathlib import Path

from metadata.image import MetadataDelta, MetadataImage, image_from_records, image_to_records
from metadata.partition_key import PartitionKey
from tests.unit.broker_agent.fake_cluster import BROKER, partition, topic, topic_id

ROOT = Path(__file__).resolve().parents[3]


def images() -> list[MetadataImage]:
    delta = MetadataDelta(MetadataImage())
    delta.replay_all(
        [topic(1), partition(1, 0, [BROKER], BROKER), partition(1, 1, [BROKER], -1)], 0
    )
    delta.finish_batch(3, 1, 1)
    replayed = delta.apply()
    return [replayed, image_from_records(image_to_records(replayed), 3, 1, 1)]


def test_the_maps_hold_plain_tuples_which_a_key_finds() -> None:
    key = PartitionKey(topic_id(1), 1)
    for image in images():
        topics = image.topics
        held = (*topics.partitions, *topics.held_by(BROKER), *topics.leaderless)
        assert len(held) >= 4
        assert {type(each) for each in held} == {tuple}
        assert topics.partitions.get(key) is topics.partitions[key]
        assert key in set(topics.partitions)


def test_nothing_else_has_that_name() -> None:
    definition = re.compile(r"^(class PartitionKey\b|PartitionKey\b.*=)", re.MULTILINE)
    files = sorted(ROOT.glob("[a-z]*/**/*.py"))
    found = [str(path.relative_to(ROOT)) for path in files if definition.search(path.read_text())]
    assert found == ["metadata/partition_key.py"]
