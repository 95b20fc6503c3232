"""No answer leaves a reference cycle that holds an image.

Python's collector would free it late, and then in one go. An image is held by the frames of
generators that have not ended, and of the tracebacks of exceptions that are kept.
"""

import gc
import types
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from metadata.image import MetadataImage
from tests.unit.controller.leader.test_changes import body
from tests.unit.controller.real_cluster import RealCluster


@contextmanager
def what_the_collector_finds() -> Iterator[list[object]]:
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    found: list[object] = []
    try:
        yield found
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.fixture(scope="module")
def cluster():
    cluster = RealCluster(nodes=1)
    cluster.online(1, 2)
    for number in range(3):
        cluster.ask("POST", "/v1/topics", body(f"t{number}", 30))
    # What is there already need not be searched again after each answer.
    gc.collect()
    gc.freeze()
    yield cluster
    gc.unfreeze()


HOLDERS = (MetadataImage, types.FrameType, types.GeneratorType, types.TracebackType)
ASKED = [
    ("POST", "/v1/topics", body("large", 20_000), {}),
    ("POST", "/v1/topics", body("t1", 3), {}),
    ("POST", "/v1/topics", body("no/name", 3), {}),
    ("POST", "/v1/topics", {**body("dry", 30), "dryRun": True}, {}),
    ("GET", "/v1/topics", None, {"limit": "1"}),
    ("GET", "/v1/topics/t1", None, {}),
    ("GET", "/v1/topics/nobody", None, {}),
    ("GET", "/v1/brokers", None, {}),
    ("GET", "/v1/log", None, {"format": "json"}),
    ("DELETE", "/v1/topics/nobody", None, {}),
    ("DELETE", "/v1/topics/t2", None, {}),
    ("DELETE", "/v1/brokers/2", None, {}),
    ("DELETE", "/v1/brokers/2", None, {"force": "true"}),
]


@pytest.mark.parametrize(("method", "path", "sent", "query"), ASKED)
def test_an_answer_leaves_no_image_behind(cluster, method, path, sent, query):
    with what_the_collector_finds() as found:
        cluster.ask(method, path, sent, query=query)
        cluster.run(1.0)
    assert not [one for one in found if isinstance(one, HOLDERS)]
