from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.disk.interface import Disk
from tests.conformance.disk_kits import DISK_KITS, DiskKit
from tests.conformance.link_kits import LINK_KITS, LinkKit


@pytest.fixture(params=sorted(DISK_KITS))
def disk_kit(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DiskKit]:
    kit = DISK_KITS[request.param](tmp_path)
    yield kit
    kit.end()


@pytest.fixture
def disk(disk_kit: DiskKit) -> Disk:
    disk_kit.disk.lock()
    return disk_kit.disk


@pytest.fixture(params=sorted(LINK_KITS))
def link_kit(request: pytest.FixtureRequest) -> Iterator[LinkKit]:
    kit = LINK_KITS[request.param]()
    yield kit
    kit.end()
