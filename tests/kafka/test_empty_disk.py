"""A broker with an empty disk joins by a snapshot, after the projected log's start has moved."""

from pathlib import Path

from logberg.kafka.jars import kafka_jars
from tests.kafka.broker_logs import FOLDER, batches_by_offset, end_of, segment_bytes
from tests.kafka.jvm.programs import JavaPrograms
from tests.kafka.our_controllers import our_controllers


def test_a_broker_with_an_empty_disk_joins_by_snapshot(tmp_path) -> None:
    jars = kafka_jars()
    programs = JavaPrograms(jars)
    with our_controllers(tmp_path, checkpoint_bytes=32_768, journal_tail_bytes=65_536) as cluster:
        cluster.add_brokers(2, jars)
        programs.run("Basics", cluster.bootstrap, "basics", "3", "2")
        number = 0

        def moved() -> bool:
            nonlocal number
            number += 1
            programs.run("Topic", cluster.bootstrap, f"more-{number}", "80", "2")
            with cluster.kafka(cluster.leader()) as client:
                return client.read_log().snapshot is not None

        cluster.until(moved, "the projected log begins later", 240.0)
        late = cluster.add_broker(jars)
        late.wait_running()
        folder = Path(late.folder / "data")
        assert list((folder / FOLDER).glob("*.checkpoint")), "it loaded no snapshot"
        held = segment_bytes(folder)
        assert min(batches_by_offset(held), default=end_of(held)) > 0
        # It knows what was there before: it takes replicas of an old topic.
        programs.run("Basics", cluster.address_of(late), "by-the-late-one", "3", "3")
        assert "basics" in programs.run("Names", cluster.address_of(late))
        # A new snapshot is loaded by the image that a restart reads.
        assert late.stop()
        late.start()
        late.wait_running()
        assert cluster.broker_states() == {11: "online", 12: "online", 13: "online"}
