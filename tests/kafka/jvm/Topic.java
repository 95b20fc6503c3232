// Creates a topic: java Topic BOOTSTRAP TOPIC PARTITIONS REPLICAS. Prints when it began and when
// it was answered, in ms of the wall clock.

import java.util.List;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

public final class Topic {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("default.api.timeout.ms", "120000");
        try (Admin admin = Admin.create(settings)) {
            admin.describeCluster().nodes().get(60, TimeUnit.SECONDS);
            NewTopic topic = new NewTopic(
                    arguments[1], Integer.parseInt(arguments[2]), Short.parseShort(arguments[3]));
            long began = System.currentTimeMillis();
            admin.createTopics(List.of(topic)).all().get(120, TimeUnit.SECONDS);
            System.out.println(began + " " + System.currentTimeMillis());
        }
    }
}
