"""A broker of Kafka 3.9 that keeps its metadata in ZooKeeper, and Kafka's own tools.

Rule: as in `tests.coordination.servers.zookeeper`: the jars come by Maven, and `NoToolError` says
why if they can't be had.
"""

import socket
import subprocess
import time
from pathlib import Path
from typing import Final

from benchmarks.peers import tools
from logberg.local.child import Child
from tests.conformance.ports import free_port

_QUICK: Final = ("-Xmx256m", "-Xms64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_START_S: Final = 90.0
_LOGGING: Final = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
"""


class LegacyKafka:
    """One broker."""

    def __init__(self, folder: Path, broker_id: int, zookeeper: str) -> None:
        """`zookeeper`: its address with the chroot. Raises NoToolError."""
        self.broker_id = broker_id
        self.zookeeper = zookeeper
        self.port = free_port()
        self._folder = folder
        folder.mkdir(parents=True)
        jars = tools.jars("kafka-zookeeper")
        logging = folder / "log4j.properties"
        logging.write_text(_LOGGING)
        self._java = (
            tools.java(),
            *_QUICK,
            f"-Dlog4j.configuration=file:{logging}",
            "-cp",
            f"{jars}/*",
        )
        settings = folder / "server.properties"
        settings.write_text(
            f"broker.id={broker_id}\nzookeeper.connect={zookeeper}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port}\nlog.dirs={folder / 'data'}\n"
            "offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n"
            "authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n"
            "super.users=User:ANONYMOUS\nzookeeper.session.timeout.ms=6000\n"
            "password.encoder.secret=of-this-test\n"
        )
        self.child = Child(
            f"kafka-{broker_id}", ["kafka.Kafka", str(settings)], folder / "kafka.log", self._java
        )

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        self.child.start()
        until = time.monotonic() + _START_S
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return
            except OSError:
                assert self.child.running, self.child.obituary()
                if time.monotonic() > until:
                    raise TimeoutError(self.child.last_words(20)) from None
                time.sleep(0.2)

    def stop(self) -> None:
        self.child.kill()

    def tool(self, main: str, *arguments: str) -> str:
        """Run one of Kafka's tools, and return what it says."""
        done = subprocess.run(
            [*self._java, main, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=self._folder,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def topics(self, *arguments: str) -> str:
        """Run kafka-topics.sh."""
        main = "org.apache.kafka.tools.TopicCommand"
        return self.tool(main, "--bootstrap-server", self.address, *arguments)

    def configs(self, *arguments: str) -> str:
        """Run kafka-configs.sh."""
        main = "kafka.admin.ConfigCommand"
        return self.tool(main, "--bootstrap-server", self.address, *arguments)

    def acls_in_zookeeper(self, *arguments: str) -> str:
        """Run kafka-acls.sh on ZooKeeper itself, without a broker."""
        where = f"zookeeper.connect={self.zookeeper}"
        main = "kafka.admin.AclCommand"
        return self.tool(main, "--authorizer-properties", where, *arguments)
