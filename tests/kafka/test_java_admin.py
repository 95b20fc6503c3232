"""Kafka's Java client changes something at the moment in which our leading controller is killed.

The client asks a real broker, which forwards the change to whoever leads. The clients package has
the same test at our own agents.
"""

from logberg.kafka.jars import kafka_jars
from tests.kafka.jvm.java_admin import java_admin
from tests.kafka.jvm.programs import JavaPrograms
from tests.kafka.our_controllers import our_controllers

KILLS = 3


def test_a_change_of_the_java_client_succeeds_though_the_leader_was_killed(tmp_path) -> None:
    jars = kafka_jars()
    programs = JavaPrograms(jars)
    with our_controllers(tmp_path, default_replication_factor=2) as cluster:
        cluster.add_brokers(2, jars)
        with java_admin(programs, cluster.bootstrap) as admin:
            admin.create("before")
            for count in range(KILLS):
                leader = cluster.leading()
                leader.kill()
                took_ms = admin.create(f"after-{count}")
                print(f"kill {count}: acknowledged after {took_ms} ms")
                cluster.revive(leader)
        names = programs.run("Names", cluster.bootstrap).split()
        wanted = {"before", *(f"after-{count}" for count in range(KILLS))}
        assert wanted <= set(names), names
        assert cluster.broker_states() == {11: "online", 12: "online"}
