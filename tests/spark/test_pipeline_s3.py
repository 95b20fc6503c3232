"""The pipeline keeps its tables in object storage as it does in a folder."""

from collections.abc import Iterator

import pytest
from pyarrow import fs

from audit.lake.place import LakeError, LakePlace
from audit.lake.reading import dataset
from tests.spark.kept_rows import check
from tests.spark.log_writer import LogWriter
from tests.spark.one_process import take_in

KEYS = "scheme=http&access_key=any&secret_key=hidden"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    server = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    server.start()
    try:
        host, port = server.get_host_and_port()
        store = fs.S3FileSystem(
            endpoint_override=f"{host}:{port}",
            scheme="http",
            region="us-east-1",
            access_key="any",
            secret_key="hidden",
            allow_bucket_creation=True,
        )
        store.create_dir("tables")
        yield f"s3://tables/audited?endpoint_override={host}:{port}&{KEYS}"
    finally:
        server.stop()


def test_tables_in_object_storage(tmp_path, bucket):
    log = LogWriter(tmp_path / "log", seed=44, segment_bytes=8_192).append(40)
    take_in(log.folder, bucket, records_per_trigger=150)
    log.append(20)
    take_in(log.folder, bucket)
    check(log.folder, bucket)


def test_a_bucket_that_is_not_there_is_named_without_its_keys(tmp_path, bucket):
    log = LogWriter(tmp_path / "log", seed=44).append(5)
    elsewhere = bucket.replace("tables/audited", "nowhere/audited")
    with pytest.raises(LakeError, match="s3://nowhere/audited") as caught:
        take_in(log.folder, elsewhere)
    assert "hidden" not in str(caught.value)
    with pytest.raises(LakeError):
        dataset(LakePlace(elsewhere), "bronze")
