"""Places to which heads are written: what lies there is never replaced, and S3 keeps it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.questions.kept_heads import compare_with_heads
from controller.signing.head_drop import batches_name, head_name
from logberg.processes.head_places import open_head_place, reading_place
from logberg.processes.kept_places import read_kept
from logberg.processes.locked_objects import LockedObjects
from tests.object_store import ObjectStore, object_store
from tests.oracles.transparency.drawn_trees import DrawnTree
from tests.rewrites.forging import forged_log, true_log
from tests.rewrites.parties import ALL, KEYS, note_of
from tests.unit.broker_agent.fake_cluster import CLUSTER_ID

PUBLIC = [key.public for key in KEYS]


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store("heads") as running:
        yield running


def test_a_folder_that_is_not_there_is_no_empty_place(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no folder"):
        reading_place(str(tmp_path / "nowhere"))
    place = open_head_place(str(tmp_path / "a" / "b"))
    with pytest.raises(OSError, match="not there"):
        place.put_new("x", b"")
    with pytest.raises(OSError, match="a folder or"):
        open_head_place("gs://bucket/x")


def test_a_file_that_was_not_finished_has_no_name_of_a_head(tmp_path: Path) -> None:
    place = open_head_place(str(tmp_path / "drop"))
    assert place.put_new(head_name(3), b"x")
    assert place.names() == [head_name(3)]
    assert sorted(path.name for path in (tmp_path / "drop").iterdir()) == [head_name(3)]


@pytest.mark.slow
def test_an_object_is_written_once(store: ObjectStore) -> None:
    place = open_head_place(f"s3://heads/once{store.options}")
    assert place.put_new("a", b"one")
    assert not place.put_new("a", b"two")
    assert place.read("a") == b"one"
    assert place.put_new("b", b"")
    assert place.names() == ["a", "b"]


@pytest.mark.slow
def test_an_object_is_locked_for_as_long_as_the_setting_says(store: ObjectStore) -> None:
    boto3 = pytest.importorskip("boto3")
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{store.endpoint}",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
    place = open_head_place(f"s3://locked/heads{store.options}", lock_days=7)
    assert place.put_new("a", b"one")
    kept = client.head_object(Bucket="locked", Key="heads/a")
    assert kept["ObjectLockMode"] == "COMPLIANCE"
    versions = client.list_object_versions(Bucket="locked", Prefix="heads/a")["Versions"]
    with pytest.raises(client.exceptions.ClientError, match="AccessDenied"):
        client.delete_object(Bucket="locked", Key="heads/a", VersionId=versions[0]["VersionId"])


@pytest.mark.slow
def test_a_bucket_that_refuses_is_an_error_that_says_why(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OSError, match="NoSuchBucket"):
        open_head_place(f"s3://nowhere/x{store.options}").put_new("a", b"")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OSError, match="AWS_ACCESS_KEY_ID"):
        LockedObjects("s3://bucket/x", 0)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "one")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "two")
    assert LockedObjects("s3://bucket/x", 0)
    with pytest.raises(OSError, match="unknown"):
        LockedObjects("s3://bucket/x?colour=red", 0)
    assert os.environ["AWS_ACCESS_KEY_ID"] == "one"


def test_what_was_written_names_the_first_batch_that_differs(tmp_path: Path) -> None:
    true = true_log(60)
    tree = DrawnTree([batch.hash for batch in true])
    place = open_head_place(str(tmp_path / "drop"))
    # Two controllers wrote, and their files of hashes overlap.
    for first, end in ((0, 20), (20, 40), (10, 30)):
        place.put_new(batches_name(first, end), b"".join(tree.leaves[first:end]))
    for size in (20, 40):
        place.put_new(head_name(size), note_of(tree, size, ALL))
    kept = read_kept(str(tmp_path / "drop"))
    assert len(kept.hashes) == 40 * 32
    right = compare_with_heads(true, CLUSTER_ID, kept, PUBLIC)
    assert (right.ok, right.held, right.newest_held) == (True, 2, 40)
    for at in (0, 19, 25, 39):
        forged = forged_log(true, at, 3)
        found = compare_with_heads(forged, CLUSTER_ID, kept, PUBLIC)
        assert not found.ok
        assert found.first_wrong_batch == at
        assert found.first_wrong_offset == true[at].header.base_offset
    assert compare_with_heads(forged_log(true, 40, 3), CLUSTER_ID, kept, PUBLIC).ok
    short = compare_with_heads(true[:30], CLUSTER_ID, kept, PUBLIC)
    assert (short.ok, short.first_wrong_batch) == (False, 30)
