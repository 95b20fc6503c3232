package logberg.kafkatests;

import java.io.BufferedWriter;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * One of our controllers as a process, run by `logberg controller` on a server.properties.
 *
 * The file holds what the test set for its servers, as Kafka's controller would read it. Only what
 * says where the node is stands there anew.
 */
public final class LogbergController {
    /** How our controllers are started: the system property that holds the words of the command. */
    private static final String COMMAND = "logberg.command";
    /** The folder for what they log. */
    private static final String OUTPUT = "logberg.output";
    private static final long START_S = 60;
    private static final long STOP_S = 20;
    private static final int ASK_MS = 10_000;
    private static final AtomicInteger STARTS = new AtomicInteger();
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Where the node is, and which are the brokers' own listeners: written anew. */
    private static final Set<String> PLACES = Set.of(
        "advertised.listeners", "broker.id", "controller.listener.names",
        "controller.quorum.bootstrap.servers", "controller.quorum.voters", "early.start.listeners",
        "inter.broker.listener.name", "listener.security.protocol.map", "listeners", "log.dir",
        "log.dirs", "metadata.log.dir", "node.id", "process.roles", "security.inter.broker.protocol");
    /** Java classes on a broker. The broker gets them; a controller in Python can't load them. */
    private static final Set<String> JAVA_CLASSES = Set.of(
        "client.quota.callback.class", "config.providers", "principal.builder.class");
    /** Java classes that only controllers use. */
    private static final Set<String> POLICIES = Set.of(
        "create.topic.policy.class.name", "alter.config.policy.class.name");
    private static final String AUTHORIZER = "authorizer.class.name";
    private static final String OUR_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    /** Kafka's features that begin above 0 in a log of ours, unless its settings say otherwise. */
    private static final List<String> FEATURES = List.of(
        "eligible.leader.replicas.version", "group.version", "share.version", "streams.version",
        "transaction.version");

    private static final short FIRST_LEVEL = 21;

    private final int nodeId;
    private final Map<String, String> properties = new TreeMap<>();
    private final Map<String, Short> features = new TreeMap<>();
    private final LogbergQuorum quorum;
    private final LogbergQuorum.Ports ports;
    private final Path folder;
    private final String listenerName;
    private volatile int port = -1;
    private volatile Process process;
    private volatile Path output;

    public LogbergController(
        String clusterId, int nodeId, Map<String, Object> properties, BootstrapMetadata bootstrap
    ) {
        this.nodeId = nodeId;
        this.quorum = LogbergQuorum.of(clusterId);
        this.folder = Path.of(text(properties.get("metadata.log.dir")));
        this.listenerName = text(properties.get("controller.listener.names")).split(",")[0].trim();
        takeProperties(properties);
        FEATURES.forEach(name -> features.put(name, (short) 0));
        for (ApiMessageAndVersion record : bootstrap.records()) {
            if (record.message() instanceof FeatureLevelRecord level) {
                features.put(level.name(), level.featureLevel());
            }
        }
        if (features.getOrDefault(MetadataVersion.FEATURE_NAME, (short) 0) < FIRST_LEVEL) {
            throw new NotOnLogbergException(
                "a metadata.version below " + FIRST_LEVEL + " (3.9-IV0), at which our logs begin");
        }
        this.ports = quorum.join(nodeId);
    }

    private void takeProperties(Map<String, Object> all) {
        for (Map.Entry<String, Object> one : all.entrySet()) {
            String key = one.getKey();
            if (POLICIES.contains(key)) {
                throw new NotOnLogbergException("a Java class on controllers: " + key);
            }
            boolean foreign = JAVA_CLASSES.contains(key)
                || key.equals(AUTHORIZER) && !text(one.getValue()).equals(OUR_AUTHORIZER);
            if (one.getValue() != null && !PLACES.contains(key) && !foreign) {
                properties.put(key, text(one.getValue()));
            }
        }
        String protocol = protocolOf(text(all.get("listener.security.protocol.map")));
        if (!protocol.equals("PLAINTEXT")) {
            throw new NotOnLogbergException("a listener of controllers with " + protocol);
        }
    }

    private String protocolOf(String map) {
        for (String pair : map.split(",")) {
            String[] parts = pair.trim().split(":");
            if (parts.length == 2 && parts[0].equalsIgnoreCase(listenerName)) {
                return parts[1];
            }
        }
        return "PLAINTEXT";
    }

    private static String text(Object value) {
        return value instanceof Password secret ? secret.value() : value == null ? "" : value.toString();
    }

    public String listenerName() {
        return listenerName;
    }

    public boolean hasPort() {
        return port > 0;
    }

    /** Take the port at which brokers look for this controller. */
    public void takePort(int free) {
        port = free;
    }

    public int port() {
        return port;
    }

    /** Start the process and wait until it answers. */
    public synchronized void start() {
        if (process != null && process.isAlive()) {
            return;
        }
        try {
            List<String> command = new java.util.ArrayList<>(
                List.of(System.getProperty(COMMAND).split("\n")));
            command.addAll(List.of("--config", writeSettings().toString()));
            command.addAll(List.of("--config", writeProperties().toString()));
            output = Path.of(System.getProperty(OUTPUT), "controller-" + nodeId + "-" + STARTS.incrementAndGet() + ".log");
            ProcessBuilder builder = new ProcessBuilder(command)
                .redirectErrorStream(true).redirectOutput(output.toFile());
            builder.environment().keySet().removeIf(
                name -> name.startsWith("KAFKA_") || name.equals("CLUSTER_ID"));
            process = builder.start();
        } catch (IOException error) {
            throw new IllegalStateException("controller " + nodeId + " can't be started", error);
        }
        awaitAnswer();
    }

    private Path writeSettings() throws IOException {
        Path file = folder.resolve("controller.toml");
        try (BufferedWriter lines = Files.newBufferedWriter(file)) {
            lines.write("cluster_key = \"" + quorum.keyFile() + "\"\n[kafka]\n");
            lines.write("listen = \"127.0.0.1:" + port + "\"\n");
            lines.write("advertised = \"localhost:" + port + "\"\n");
            lines.write("listener_name = \"" + listenerName + "\"\n[initial_features]\n");
            for (Map.Entry<String, Short> level : features.entrySet()) {
                lines.write("\"" + level.getKey() + "\" = " + level.getValue() + "\n");
            }
        }
        return file;
    }

    private Path writeProperties() throws IOException {
        Properties all = new Properties();
        all.putAll(properties);
        all.put("process.roles", "controller");
        all.put("node.id", Integer.toString(nodeId));
        all.put("controller.listener.names", "QUORUM");
        all.put("listeners", "QUORUM://127.0.0.1:" + ports.quorum());
        all.put("controller.quorum.voters", quorum.voters());
        all.put("logberg.controllers.http", quorum.urls());
        all.put("log.dirs", folder.toString());
        Path file = folder.resolve("server.properties");
        try (BufferedWriter lines = Files.newBufferedWriter(file)) {
            all.store(lines, null);
        }
        return file;
    }

    private void awaitAnswer() {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_S);
        while (true) {
            try {
                status();
                return;
            } catch (IOException notYet) {
                if (!process.isAlive() || System.nanoTime() > until) {
                    throw new IllegalStateException("controller " + nodeId + " does not answer: " + said());
                }
            }
            pause();
        }
    }

    private String said() {
        try {
            String all = Files.readString(output);
            return all.substring(Math.max(0, all.length() - 3000));
        } catch (IOException error) {
            return error.toString();
        }
    }

    static void pause() {
        try {
            Thread.sleep(50);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", interrupted);
        }
    }

    /** Stop it in order; harmless if it does not run. */
    public synchronized void stop() {
        if (process == null || !process.isAlive()) {
            return;
        }
        process.destroy();
        try {
            if (!process.waitFor(STOP_S, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /** Wait for its end. */
    public void await() {
        try {
            if (process != null) {
                process.waitFor();
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Ask the process for its status: GET /v1/status. */
    JsonNode status() throws IOException {
        URI uri = URI.create("http://127.0.0.1:" + ports.http() + "/v1/status");
        HttpURLConnection connection = (HttpURLConnection) uri.toURL().openConnection();
        connection.setConnectTimeout(ASK_MS);
        connection.setReadTimeout(ASK_MS);
        connection.setRequestProperty("accept", "application/json");
        // Otherwise Java keeps a thread, which Kafka's tests take for a leak.
        connection.setRequestProperty("connection", "close");
        try (var body = connection.getInputStream()) {
            return JSON.readTree(body);
        } finally {
            connection.disconnect();
        }
    }
}
