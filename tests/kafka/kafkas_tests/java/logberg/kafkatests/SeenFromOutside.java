package logberg.kafkatests;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.controller.Controller;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import org.mockito.stubbing.Answer;

import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;

/**
 * What Kafka's kit asks a controller in its own JVM, answered from our controller's status.
 *
 * These are few things: whether it leads, how far its log goes, whether the brokers are ready, and its
 * port. All else throws NotOnLogbergException, so no test can pass on an answer that nobody gave.
 */
public final class SeenFromOutside {
    private final LogbergController process;
    private final Supplier<Controller> controller = once(() -> made(Controller.class, this::ofController));
    private final Supplier<SocketServer> socketServer = once(() -> made(SocketServer.class, this::ofSocketServer));
    private final Supplier<KafkaRaftManager<ApiMessageAndVersion>> raftManager =
        once(() -> madeRaftManager());

    public SeenFromOutside(LogbergController process) {
        this.process = process;
    }

    public Controller controller() {
        return controller.get();
    }

    public SocketServer socketServer() {
        return socketServer.get();
    }

    public KafkaRaftManager<ApiMessageAndVersion> raftManager() {
        return raftManager.get();
    }

    private Object ofController(InvocationOnMock asked) throws Exception {
        return switch (asked.getMethod().getName()) {
            case "isActive" -> status().path("active").asBoolean();
            case "curClaimEpoch" -> {
                JsonNode status = status();
                yield status.path("active").asBoolean() ? status.path("leaderEpoch").asInt() : -1;
            }
            case "waitForReadyBrokers" -> brokersReady(asked.getArgument(0));
            default -> throw unknown(asked);
        };
    }

    private CompletableFuture<Void> brokersReady(int brokers) {
        return CompletableFuture.runAsync(() -> {
            while (status().path("brokers").path("online").asInt() < brokers) {
                LogbergController.pause();
            }
        });
    }

    private Object ofSocketServer(InvocationOnMock asked) {
        if (asked.getMethod().getName().equals("boundPort")) {
            return process.port();
        }
        throw unknown(asked);
    }

    @SuppressWarnings("unchecked")
    private KafkaRaftManager<ApiMessageAndVersion> madeRaftManager() {
        return made(KafkaRaftManager.class, this::ofRaftManager);
    }

    /** The log: one method of the raft manager returns it, and one of the log its end. */
    private Object ofRaftManager(InvocationOnMock asked) {
        return switch (asked.getMethod().getName()) {
            case "raftLog", "replicatedLog" -> made(asked.getMethod().getReturnType(), this::ofLog);
            default -> throw unknown(asked);
        };
    }

    private Object ofLog(InvocationOnMock asked) throws Exception {
        if (!asked.getMethod().getName().equals("endOffset")) {
            throw unknown(asked);
        }
        long end = status().path("logEnd").asLong();
        return asked.getMethod().getReturnType().getConstructor(long.class).newInstance(end);
    }

    private JsonNode status() {
        try {
            return process.status();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static NotOnLogbergException unknown(InvocationOnMock asked) {
        return new NotOnLogbergException("a controller's memory: "
            + asked.getMethod().getDeclaringClass().getSimpleName() + "." + asked.getMethod().getName());
    }

    /** Make an object of one of Kafka's classes, without its constructor, that answers as we say. */
    private static <T> T made(Class<T> kind, Answer<Object> answer) {
        Answer<Object> ours = asked -> asked.getMethod().getDeclaringClass() == Object.class
            ? Mockito.RETURNS_DEFAULTS.answer(asked) : answer.answer(asked);
        return Mockito.mock(kind, Mockito.withSettings().stubOnly().defaultAnswer(ours));
    }

    private static <T> Supplier<T> once(Supplier<T> make) {
        return new Supplier<>() {
            private T value;

            @Override
            public synchronized T get() {
                if (value == null) {
                    value = make.get();
                }
                return value;
            }
        };
    }
}
