"""One Spark session for all tests of a worker: it takes ten seconds to start.

`make test` has two workers. Two sessions share no folder and no port; each has a heap of 1 GiB.
"""

from collections.abc import Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from audit.spark.session import audit_session
from tests.spark.small_session import JAVA, SMALL


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", JAVA)
        session = audit_session(driver_memory="1g", app_name="logberg tests", settings=SMALL)
    gateway = SparkContext._gateway
    yield session
    session.stop()
    java = gateway.proc
    gateway.shutdown()
    java.stdin.close()
    java.wait(30)
