"""One Spark session for all tests here: it takes ten seconds to start."""

from collections.abc import Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from audit.spark.session import audit_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = audit_session(driver_memory="1g", app_name="quorate tests")
    gateway = SparkContext._gateway
    yield session
    session.stop()
    java = gateway.proc
    gateway.shutdown()
    java.stdin.close()
    java.wait(30)
