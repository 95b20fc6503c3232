"""The features that ApiVersions tells Kafka's clients about, from an image of the metadata."""

from typing import Final

from kafka_listener.serving.api_versions import FeatureVersions
from metadata.features import LOGBERG_VERSION, OF_KAFKAS_BROKERS, SUPPORTED
from metadata.image import MetadataImage

_KRAFT_VERSION: Final = "kraft.version"


def feature_versions(image: MetadataImage) -> FeatureVersions:
    """Return the features that Kafka's clients know, with the levels of an image."""
    supported = {
        name: (levels.low, levels.high)
        for name, levels in {**SUPPORTED, **OF_KAFKAS_BROKERS}.items()
        if name != LOGBERG_VERSION
    }
    supported[_KRAFT_VERSION] = (0, 1)
    finalized = {
        name: level for name, level in image.features.levels.items() if name != LOGBERG_VERSION
    }
    finalized[_KRAFT_VERSION] = 1
    return FeatureVersions(supported, finalized, image.offset - 1)
