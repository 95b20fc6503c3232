package kafka.server;

import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.controller.Controller;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import logberg.kafkatests.LogbergController;
import logberg.kafkatests.NotOnLogbergException;
import logberg.kafkatests.SeenFromOutside;
import scala.Option;

/**
 * Stands in for Kafka's class of this name: the controller is one of Logberg, in a process of its own.
 *
 * Kafka's test kit makes, starts and stops its controllers by this class alone. So it lies before
 * Kafka's jars on the class path, and kit, brokers and tests stay as they are. What a test reads in
 * a controller's memory is not there: that throws NotOnLogbergException.
 */
public class ControllerServer {
    private final SharedServer sharedServer;
    private final KafkaConfigSchema configSchema;
    private final BootstrapMetadata bootstrapMetadata;
    private final LogbergController process;
    private final SeenFromOutside seen;
    private final CompletableFuture<Integer> boundPort = new CompletableFuture<>();

    public ControllerServer(
        SharedServer sharedServer, KafkaConfigSchema configSchema, BootstrapMetadata bootstrapMetadata
    ) {
        this.sharedServer = sharedServer;
        this.configSchema = configSchema;
        this.bootstrapMetadata = bootstrapMetadata;
        Map<String, Object> properties = config().originals();
        if (String.valueOf(properties.get("process.roles")).contains("broker")) {
            throw new NotOnLogbergException("combined mode: broker and controller in one process");
        }
        this.process = new LogbergController(clusterId(), sharedServer.nodeId(), properties, bootstrapMetadata);
        this.seen = new SeenFromOutside(process);
    }

    public void startup() {
        if (!process.hasPort()) {
            process.takePort(releasedPort());
        }
        process.start();
        boundPort.complete(process.port());
    }

    /** The kit has bound the listener's port already, so that brokers know it. Give it to our process. */
    private int releasedPort() {
        try (ServerSocketChannel bound = sharedServer.socketFactory().openServerSocket(
                process.listenerName(), new InetSocketAddress("localhost", 0), 50, -1)) {
            return ((InetSocketAddress) bound.getLocalAddress()).getPort();
        } catch (java.io.IOException error) {
            throw new IllegalStateException("the port of a controller can't be bound", error);
        }
    }

    public void shutdown() {
        process.stop();
    }

    public void awaitShutdown() {
        process.await();
    }

    public String clusterId() {
        return sharedServer.clusterId();
    }

    public KafkaConfig config() {
        return sharedServer.controllerConfig();
    }

    public SharedServer sharedServer() {
        return sharedServer;
    }

    public KafkaConfigSchema configSchema() {
        return configSchema;
    }

    public BootstrapMetadata bootstrapMetadata() {
        return bootstrapMetadata;
    }

    public CompletableFuture<Integer> socketServerFirstBoundPortFuture() {
        return boundPort;
    }

    public Controller controller() {
        return seen.controller();
    }

    public SocketServer socketServer() {
        return seen.socketServer();
    }

    public KafkaRaftManager<ApiMessageAndVersion> raftManager() {
        return seen.raftManager();
    }

    /** Our controllers have no authorizer in Java whose entries a test could wait for. */
    public Option<Plugin<Authorizer>> authorizerPlugin() {
        return Option.empty();
    }
}
