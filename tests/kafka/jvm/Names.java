// Prints the names of all topics that a broker knows: java Names BOOTSTRAP [client.properties]

import java.io.FileInputStream;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;

public final class Names {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        if (arguments.length > 1) {
            try (FileInputStream file = new FileInputStream(arguments[1])) {
                settings.load(file);
            }
        }
        settings.put("bootstrap.servers", arguments[0]);
        try (Admin admin = Admin.create(settings)) {
            new TreeSet<>(admin.listTopics().names().get(60, TimeUnit.SECONDS))
                    .forEach(System.out::println);
        }
    }
}
