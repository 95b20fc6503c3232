// Uses a Kafka cluster as programs do, and prints a line for each thing that worked.
//
//     java Basics BOOTSTRAP TOPIC PARTITIONS REPLICAS [client.properties]
//
// Creates the topic, sends 100 messages, reads them in a group, and runs two transactions of which
// one is aborted. It ends with 1 and a sentence at the first thing that is not as it should be.

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Basics {
    private static final int MESSAGES = 100;
    private static final long LIMIT_MS = 60_000;

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        Properties shared = ClientSettings.of(arguments[0], arguments, 4);
        create(shared, topic, Integer.parseInt(arguments[2]), Short.parseShort(arguments[3]));
        produce(shared, topic);
        consume(shared, topic);
        transact(shared, topic);
    }

    private static Properties with(Properties shared, Map<String, String> more) {
        Properties all = new Properties();
        all.putAll(shared);
        all.putAll(more);
        return all;
    }

    private static void create(Properties shared, String topic, int partitions, short replicas)
            throws Exception {
        try (Admin admin = Admin.create(shared)) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, replicas)))
                    .all().get(60, TimeUnit.SECONDS);
        } catch (java.util.concurrent.ExecutionException error) {
            if (!(error.getCause() instanceof TopicExistsException)) {
                throw error;
            }
        }
        System.out.println("topic created");
    }

    private static Properties producer(Properties shared, Map<String, String> more) {
        Properties all = with(shared, more);
        all.put("key.serializer", StringSerializer.class.getName());
        all.put("value.serializer", StringSerializer.class.getName());
        all.put("acks", "all");
        return all;
    }

    private static void produce(Properties shared, String topic) throws Exception {
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(producer(shared, Map.of()))) {
            for (int number = 0; number < MESSAGES; number++) {
                producer.send(new ProducerRecord<>(topic, "key-" + number, "plain-" + number))
                        .get(60, TimeUnit.SECONDS);
            }
        }
        System.out.println("produced " + MESSAGES);
    }

    private static void transact(Properties shared, String topic) throws Exception {
        Properties settings = producer(shared, Map.of("transactional.id", "basics-" + topic));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "committed")).get(60, TimeUnit.SECONDS);
            producer.commitTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "aborted")).get(60, TimeUnit.SECONDS);
            producer.abortTransaction();
        }
        Set<String> seen = read(shared, topic, "after-transactions", MESSAGES + 1);
        if (!seen.contains("committed") || seen.contains("aborted")) {
            fail("a committed transaction is not to be seen, or an aborted one is: " + seen);
        }
        System.out.println("transaction committed, another aborted");
    }

    private static void consume(Properties shared, String topic) {
        Set<String> seen = read(shared, topic, "group-of-" + topic, MESSAGES);
        for (int number = 0; number < MESSAGES; number++) {
            if (!seen.contains("plain-" + number)) {
                fail("plain-" + number + " was not read");
            }
        }
        System.out.println("group read " + MESSAGES);
    }

    private static Set<String> read(Properties shared, String topic, String group, int enough) {
        Properties settings = with(shared, Map.of(
                "group.id", group, "auto.offset.reset", "earliest",
                "isolation.level", "read_committed",
                "key.deserializer", StringDeserializer.class.getName(),
                "value.deserializer", StringDeserializer.class.getName()));
        Set<String> seen = new HashSet<>();
        long until = System.currentTimeMillis() + LIMIT_MS;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (seen.size() < enough && System.currentTimeMillis() < until) {
                consumer.poll(Duration.ofMillis(200)).forEach(each -> seen.add(each.value()));
            }
            consumer.commitSync();
        }
        if (seen.size() < enough) {
            fail(group + " read " + seen.size() + " messages of " + enough);
        }
        return seen;
    }

    private static void fail(String what) {
        System.err.println(what);
        System.exit(1);
    }
}
