"""Kept tables in a store that speaks S3: written, replaced, compacted, and refused by name."""

import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("deltalake")

import pyarrow.compute as pc
from pyarrow import fs

from audit.lake.commit import committed_batch
from audit.lake.compaction import compact, vacuum
from audit.lake.place import LakeError, LakePlace
from audit.lake.reading import dataset, kept_datasets
from tests.unit.audit.lake.lakes import GOLD, gold_row, keys, put

KEYS = "scheme=http&access_key=any&secret_key=hidden"


@pytest.fixture(scope="module")
def bucket() -> Iterator[LakePlace]:
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
        store.create_dir("lakes")
        yield LakePlace(f"s3://lakes/prod/?endpoint_override={host}:{port}&{KEYS}", "cluster-1")
    finally:
        server.stop()


def test_a_bucket_keeps_tables_as_a_folder_does(bucket: LakePlace) -> None:
    place = pickle.loads(pickle.dumps(bucket))
    for batch in range(3):
        assert put(place, GOLD, [gold_row(f"{batch}", f"2026-01-0{batch + 1}")], batch)
        assert not put(place, GOLD, [gold_row("twice", "2026-01-01")], batch)
    assert put(place, GOLD, [gold_row("new", "2026-01-01")], 3, pc.field("key") == "0")
    assert committed_batch(place, GOLD) == 3
    assert sorted(keys(place)) == ["1", "2", "new"]
    assert list(kept_datasets(place)) == [GOLD]
    assert compact(place, GOLD, few_files=0)
    gone = vacuum(place, GOLD, retention_hours=0)
    assert gone == 7, "four that were merged, and three of micro-batches that ran again"
    assert sorted(keys(place)) == ["1", "2", "new"]
    assert place.shown == "s3://lakes/prod"
    with pytest.raises(LakeError, match=r"s3://lakes/prod/gold/availability is of the cluster"):
        put(place._replace(cluster_id="cluster-2"), GOLD, [], 4)


def test_a_bucket_that_is_not_there_is_said_in_the_store_s_words(bucket: LakePlace) -> None:
    place = bucket._replace(where=bucket.where.replace("lakes", "nowhere"))
    for act in (lambda: put(place, GOLD, [gold_row("a", "2026-01-01")], 0), lambda: keys(place)):
        with pytest.raises(LakeError, match=r"s3://nowhere/prod.*bucket does not exist") as raised:
            act()
        assert "hidden" not in str(raised.value)


class _Forbidden(BaseHTTPRequestHandler):
    """A store in which nobody may do anything."""

    def _refuse(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def __getattr__(self, name: str) -> object:
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def test_a_store_that_refuses_is_named_and_its_keys_are_not() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Forbidden) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"s3://lakes/prod?endpoint_override=127.0.0.1:{server.server_port}&{KEYS}"
            place = LakePlace(url, "cluster-1")
            for act in (
                lambda: put(place, GOLD, [gold_row("a", "2026-01-01")], 0),
                lambda: committed_batch(place, GOLD),
                lambda: dataset(place, GOLD),
            ):
                with pytest.raises(
                    LakeError, match=r"(?i)s3://lakes/prod/gold/availability can't be .*denied"
                ) as raised:
                    act()
                assert "hidden" not in str(raised.value)
        finally:
            server.shutdown()
            thread.join()


def test_a_bad_url_says_what_to_write() -> None:
    with pytest.raises(LakeError, match="no bucket is named"):
        dataset(LakePlace("s3:///kept"), GOLD)
    with pytest.raises(LakeError, match="'colour' is unknown"):
        dataset(LakePlace("s3://lakes/kept?colour=red"), GOLD)
