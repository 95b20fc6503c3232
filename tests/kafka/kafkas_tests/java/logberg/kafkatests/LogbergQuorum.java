package logberg.kafkatests;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/** What the controllers of one test's cluster share: each other's ports, and the cluster key. */
final class LogbergQuorum {
    private static final Map<String, LogbergQuorum> QUORUMS = new ConcurrentHashMap<>();
    private static final int KEY_BYTES = 32;
    /** Below the ports that Linux hands out for outgoing connections. */
    private static final int FIRST_PORT = 19_000;
    private static final int LAST_PORT = 29_999;
    private static final AtomicInteger NEXT_PORT =
        new AtomicInteger((int) (ProcessHandle.current().pid() * 97 % (LAST_PORT - FIRST_PORT)));

    record Ports(int quorum, int http) { }

    private final SortedMap<Integer, Ports> members = new TreeMap<>();
    private Path keyFile;

    /** All controllers of a cluster are made before the first of them starts. */
    static LogbergQuorum of(String clusterId) {
        return QUORUMS.computeIfAbsent(clusterId, id -> new LogbergQuorum());
    }

    synchronized Ports join(int nodeId) {
        return members.computeIfAbsent(nodeId, id -> new Ports(freePort(), freePort()));
    }

    /** As controller.quorum.voters lists them. */
    synchronized String voters() {
        return members.entrySet().stream()
            .map(member -> member.getKey() + "@127.0.0.1:" + member.getValue().quorum())
            .collect(Collectors.joining(","));
    }

    /** As logberg.controllers.http lists them. */
    synchronized String urls() {
        return members.entrySet().stream()
            .map(member -> member.getKey() + "@http://127.0.0.1:" + member.getValue().http())
            .collect(Collectors.joining(","));
    }

    /** The key without which secrets have no place in our log, such as SCRAM credentials. */
    synchronized Path keyFile() throws IOException {
        if (keyFile == null) {
            byte[] secret = new byte[KEY_BYTES];
            new SecureRandom().nextBytes(secret);
            keyFile = Files.createTempFile("cluster", ".key",
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            Files.writeString(keyFile, HexFormat.of().formatHex(secret) + "\n");
        }
        return keyFile;
    }

    private static int freePort() {
        for (int tries = 0; tries <= LAST_PORT - FIRST_PORT; tries++) {
            int port = FIRST_PORT + NEXT_PORT.getAndIncrement() % (LAST_PORT - FIRST_PORT + 1);
            try (ServerSocket probe = new ServerSocket()) {
                probe.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                return port;
            } catch (IOException taken) {
                // The next one may be free.
            }
        }
        throw new IllegalStateException("no port is free");
    }
}
