"""Images and deltas. An image is the immutable state that all records up to an offset give."""

from metadata.buckets import KeyChange
from metadata.image.brokers import NOT_SHUTTING_DOWN, BrokerRegistration
from metadata.image.changes import ImageChanges, difference
from metadata.image.cluster import ClusterImage, ControllerRegistration
from metadata.image.delta import MetadataDelta
from metadata.image.metadata_image import (
    EMPTY,
    MetadataImage,
    OpenTransaction,
    hash_from_scratch,
)
from metadata.image.outcomes import Outcome
from metadata.image.partition import Partition
from metadata.image.quorum import EpochStart
from metadata.image.replay_error import ReplayError
from metadata.image.snapshot import (
    controllers_records,
    image_from_records,
    image_to_records,
    load_image,
    shared_records,
)
from metadata.image.topics import Topic, TopicsImage

__all__ = [
    "EMPTY",
    "NOT_SHUTTING_DOWN",
    "BrokerRegistration",
    "ClusterImage",
    "ControllerRegistration",
    "EpochStart",
    "ImageChanges",
    "KeyChange",
    "MetadataDelta",
    "MetadataImage",
    "OpenTransaction",
    "Outcome",
    "Partition",
    "ReplayError",
    "Topic",
    "TopicsImage",
    "controllers_records",
    "difference",
    "hash_from_scratch",
    "image_from_records",
    "image_to_records",
    "load_image",
    "shared_records",
]
