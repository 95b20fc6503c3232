"""What an agent says of its host's log directories, and to whom (KIP-858, 1066)."""

from typing import Any

import msgspec
import pytest

from metadata.messages.fetch import MetadataFetchRequest
from metadata.messages.versions import RANGE_HEADER
from metadata.uuids import uuid_text
from tests.unit.broker_agent.rig import Rig

A, B = b"a" * 16, b"b" * 16


def decoded(asked: Any) -> MetadataFetchRequest:
    return msgspec.msgpack.decode(asked.request.body, type=MetadataFetchRequest)


def test_each_fetch_says_which_directories_have_failed_and_are_cordoned() -> None:
    rig = Rig(log_dirs=(A, B))
    rig.controllers.said_of_versions = {RANGE_HEADER: "1-2"}
    rig.online()
    rig.run(5)
    last = decoded(rig.controllers.last)
    assert (last.offline_log_dirs, last.cordoned_log_dirs) == ((), None)
    count = len(rig.controllers.fetches)
    rig.do(lambda: rig.agent.set_directories(failed=[B], cordoned=[A]))
    rig.run(0.5)
    assert len(rig.controllers.fetches) > count, "it is said at once"
    last = decoded(rig.controllers.last)
    assert last.offline_log_dirs == (uuid_text(B),)
    assert last.cordoned_log_dirs == (uuid_text(A),)
    rig.run(20)
    assert decoded(rig.controllers.last).offline_log_dirs == (uuid_text(B),)


def test_release_0_1_is_told_nothing_that_it_does_not_know() -> None:
    rig = Rig(log_dirs=(A, B))
    rig.do(lambda: rig.agent.set_directories(failed=[B], cordoned=[A]))
    rig.online()
    rig.run(10)
    for asked in rig.controllers.fetches:
        fields = msgspec.msgpack.decode(asked.request.body)
        assert not {"offlineLogDirs", "cordonedLogDirs"} & {*fields}
        assert "cordonedLogDirs" not in (fields.get("registration") or {})


@pytest.mark.parametrize(("failed", "named"), [((), (A, B)), ((B,), (A,))])
def test_a_registration_names_the_directories_that_work(failed: Any, named: Any) -> None:
    rig = Rig(log_dirs=(A, B))
    rig.agent.set_directories(failed=failed)
    rig.online()
    registration = decoded(rig.controllers.fetches[0]).registration
    assert registration is not None
    assert registration.log_dirs == tuple(map(uuid_text, named))
