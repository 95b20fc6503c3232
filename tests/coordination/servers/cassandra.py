"""A real Cassandra on loopback: one node of 512 MB, from the jars that Maven fetches.

Rule: as for ZooKeeper, `NoToolError` says why it can't be had. The configuration holds only what
differs from Cassandra's defaults, and what has none.
"""

import shutil
import socket
from pathlib import Path

from benchmarks.peers import tools
from coordination.backend import Auth
from logberg.local.child import Child
from tests.conformance.ports import free_port
from tests.coordination.servers.server_group import ServerGroup

MAIN = "org.apache.cassandra.service.CassandraDaemon"
EXPORTS = (
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "java.base/java.lang.ref",
    "java.base/jdk.internal.util",
    "jdk.unsupported/sun.misc",
    "jdk.compiler/com.sun.tools.javac.file",
)
OPENS = (
    "java.base/java.lang.module",
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.reflect",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
)
QUICK = (
    "cassandra.skip_wait_for_gossip_to_settle=0",
    "cassandra.superuser_setup_delay_ms=0",
    "cassandra.ring_delay_ms=100",
    "cassandra-foreground=yes",
    # Passwords are checked quickly: a client checks one for each connection.
    "cassandra.auth_bcrypt_gensalt_log2_rounds=4",
    "jdk.attach.allowAttachSelf=true",
    "io.netty.tryReflectionSetAccessible=true",
)
LOGBACK = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date %logger{20} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


class CassandraServer(ServerGroup):
    """One node with its own files below one folder."""

    name = "cassandra"
    start_s = 120.0
    user = Auth("cassandra", "cassandra")
    """Whom a fresh Cassandra knows."""

    def __init__(self, folder: Path) -> None:
        """Configure a fresh node. Raises NoToolError."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        jars = tools.jars("cassandra")
        self.port = free_port()
        storage = free_port()
        config = folder / "cassandra.yaml"
        config.write_text(
            "cluster_name: logberg\nnum_tokens: 1\n"
            "partitioner: org.apache.cassandra.dht.Murmur3Partitioner\n"
            "endpoint_snitch: SimpleSnitch\nlisten_address: 127.0.0.1\nrpc_address: 127.0.0.1\n"
            f"storage_port: {storage}\nssl_storage_port: {free_port()}\n"
            f"native_transport_port: {self.port}\n"
            "seed_provider:\n  - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n"
            f"    parameters:\n      - seeds: '127.0.0.1:{storage}'\n"
            "commitlog_sync: periodic\ncommitlog_sync_period: 10000ms\n"
            "authenticator: PasswordAuthenticator\n"
            f"data_file_directories: ['{folder}/data']\ncommitlog_directory: {folder}/commitlog\n"
            f"saved_caches_directory: {folder}/caches\nhints_directory: {folder}/hints\n"
            f"cdc_raw_directory: {folder}/cdc\nauto_snapshot: false\n"
        )
        (folder / "logback.xml").write_text(LOGBACK)
        options = [
            *("-Xms512m", "-Xmx512m", "-XX:TieredStopAtLevel=1"),
            f"-javaagent:{next(jars.glob('jamm-*.jar'))}",
            *(word for name in EXPORTS for word in ("--add-exports", f"{name}=ALL-UNNAMED")),
            *(word for name in OPENS for word in ("--add-opens", f"{name}=ALL-UNNAMED")),
            *(f"-D{setting}" for setting in QUICK),
            f"-Dcassandra.config=file://{config}",
            f"-Dcassandra.storagedir={folder}",
            f"-Dcassandra.logdir={folder}",
            f"-Dlogback.configurationFile={folder}/logback.xml",
            *("-cp", f"{folder}:{jars}/*"),
        ]
        program = (tools.java(), *options)
        self.ports = [self.port]
        self.children = [Child("cassandra", [MAIN], folder / "cassandra.log", program)]

    def serves(self, n: int) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.ports[n]), 1):
                return True
        except OSError:
            return False
