// Prints the names of all topics that a broker knows: java Names BOOTSTRAP [client.properties]

import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;

public final class Names {
    public static void main(String[] arguments) throws Exception {
        Properties settings = ClientSettings.of(arguments[0], arguments, 1);
        try (Admin admin = Admin.create(settings)) {
            new TreeSet<>(admin.listTopics().names().get(60, TimeUnit.SECONDS))
                    .forEach(System.out::println);
        }
    }
}
