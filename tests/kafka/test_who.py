"""A client's request that a real broker forwards: the audit names user, broker and address."""

import json

from logberg.kafka.jars import DEFAULT_VERSION, kafka_jars
from tests.conformance.ports import free_port
from tests.kafka.broker_logins import by_certificate, client_by_scram, users_listener
from tests.kafka.jvm.programs import JavaPrograms, KafkaTools
from tests.kafka.our_controllers import our_controllers


def test_a_forwarded_create_topics_shows_user_broker_and_client_address(tmp_path) -> None:
    jars = kafka_jars()
    with our_controllers(
        tmp_path, secure=True, delegations=[{"broker": 11, "users": ["User:alice"]}]
    ) as cluster:
        password = tmp_path / "password"
        password.write_text("alice-secret\n")
        said = cluster.command(
            *("users", "scram", "set", "alice", "--mechanism", "SCRAM-SHA-256"),
            *("--password-file", str(password)),
        )
        assert said.returncode == 0, said.stderr
        users, plain = free_port(), free_port()
        cluster.ports[11] = plain
        cluster.add_broker(
            jars,
            11,
            {**by_certificate(cluster, 11), **users_listener(plain, users, "SSL")},
        )
        cluster.wait_running()
        file = str(client_by_scram(tmp_path, "alice", "alice-secret"))
        tools = KafkaTools(DEFAULT_VERSION, tmp_path)
        create = ("--create", "--partitions", "1", "--replication-factor", "1", "--topic")
        printed = tools.run(
            "TopicCommand",
            "--bootstrap-server",
            f"127.0.0.1:{users}",
            "--command-config",
            file,
            *create,
            "by-alice",
        )
        assert "Created topic by-alice" in printed, printed
        # Nobody granted the broker to forward for those who don't log in.
        printed = tools.run(
            "TopicCommand", "--bootstrap-server", f"127.0.0.1:{plain}", *create, "by-nobody"
        )
        assert "Created" not in printed, printed
        assert "by-nobody" not in JavaPrograms(jars).run("Names", f"127.0.0.1:{plain}")
        leader = cluster.leader()
        log = cluster.local.folder / f"controller-{leader}"
        said = cluster.command("audit", "who", str(log), "topic:by-alice", "-o", "json", asks=False)
        assert said.returncode == 0, said.stderr
        (touch,) = json.loads(said.stdout)
        text = json.dumps(touch)
        assert "User:alice" in text, text
        assert "Broker:11" in text, text
        assert "127.0.0.1" in text, text
