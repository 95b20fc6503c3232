// Produces, consumes and changes a topic's config at fixed rates, and prints what became of each.
//
//     java Load BOOTSTRAP TOPIC SECONDS MESSAGES_PER_S CHANGE_EVERY_MS
//
// Times are milliseconds of the wall clock. `due` is when a message should have been sent, so a
// pause of the producer counts for all that waited behind it.
//
//     a VALUE DUE ACKNOWLEDGED PARTITION OFFSET     a message was acknowledged
//     f VALUE DUE FAILED ERROR                      a message failed
//     c VALUE PARTITION OFFSET READ                 a message was read
//     m VALUE BEGAN ENDED                           the config has a new value
//     n VALUE BEGAN ENDED ERROR                     the change of the config failed
//     e                                             the end

import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Load {
    private static final long FIRST_RETENTION_MS = 100_000_000;
    private static final long DRAIN_MS = 60_000;
    private static final PrintStream OUT = new PrintStream(
            new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16), false);

    private final String bootstrap;
    private final String topic;
    private final AtomicBoolean sending = new AtomicBoolean(true);
    private final AtomicLong acknowledged = new AtomicLong();
    private final AtomicLong read = new AtomicLong();

    private Load(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
    }

    public static void main(String[] arguments) throws Exception {
        Load load = new Load(arguments[0], arguments[1]);
        long seconds = Long.parseLong(arguments[2]);
        int perSecond = Integer.parseInt(arguments[3]);
        long everyMs = Long.parseLong(arguments[4]);
        Thread consumer = new Thread(load::consume, "consumer");
        Thread changer = new Thread(() -> load.change(everyMs), "changer");
        consumer.start();
        changer.start();
        load.produce(seconds, perSecond);
        load.sending.set(false);
        changer.join();
        consumer.join();
        say("e");
        OUT.flush();
        System.exit(0);
    }

    private static void say(String line) {
        synchronized (OUT) {
            OUT.println(line);
        }
    }

    private void produce(long seconds, int perSecond) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("acks", "all");
        settings.put("linger.ms", "0");
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.partitionsFor(topic);
            long began = System.currentTimeMillis();
            for (long value = 0; value < seconds * perSecond; value++) {
                long due = began + value * 1000 / perSecond;
                long early = due - System.currentTimeMillis();
                if (early > 0) {
                    Thread.sleep(early);
                }
                send(producer, value, due);
                if (value % perSecond == 0) {
                    OUT.flush();
                }
            }
            producer.flush();
        }
    }

    private void send(KafkaProducer<String, String> producer, long value, long due) {
        String text = Long.toString(value);
        producer.send(new ProducerRecord<>(topic, text, text), (metadata, error) -> {
            long now = System.currentTimeMillis();
            if (error != null) {
                say("f " + value + " " + due + " " + now + " " + error.getClass().getSimpleName());
            } else {
                acknowledged.incrementAndGet();
                say("a " + value + " " + due + " " + now + " " + metadata.partition() + " "
                        + metadata.offset());
            }
        });
    }

    private void consume() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "readers-of-" + topic);
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        long until = Long.MAX_VALUE;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (true) {
                consumer.poll(Duration.ofMillis(100)).forEach(each -> {
                    read.incrementAndGet();
                    say("c " + each.value() + " " + each.partition() + " " + each.offset() + " "
                            + System.currentTimeMillis());
                });
                if (!sending.get()) {
                    until = Math.min(until, System.currentTimeMillis() + DRAIN_MS);
                    boolean all = read.get() >= acknowledged.get();
                    if (all || System.currentTimeMillis() > until) {
                        return;
                    }
                }
            }
        }
    }

    private void change(long everyMs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (Admin admin = Admin.create(settings)) {
            for (long number = 0; sending.get(); number++) {
                String value = Long.toString(FIRST_RETENTION_MS + number);
                long began = System.currentTimeMillis();
                Collection<AlterConfigOp> change = List.of(new AlterConfigOp(
                        new ConfigEntry("retention.ms", value), AlterConfigOp.OpType.SET));
                try {
                    admin.incrementalAlterConfigs(Map.of(resource, change)).all().get();
                    say("m " + value + " " + began + " " + System.currentTimeMillis());
                } catch (ExecutionException error) {
                    say("n " + value + " " + began + " " + System.currentTimeMillis() + " "
                            + error.getCause().getClass().getSimpleName());
                }
                long left = everyMs - (System.currentTimeMillis() - began);
                if (left > 0) {
                    Thread.sleep(left);
                }
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
