// Creates a topic for each line that it reads: java OneByOne BOOTSTRAP [client.properties]
//
// It connects first and says "connected". For each name it prints
//
//     created NAME MS     the change was acknowledged after so many ms
//     failed NAME ERROR   it was not

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

public final class OneByOne {
    public static void main(String[] arguments) throws Exception {
        Properties settings = ClientSettings.of(arguments[0], arguments, 1);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Admin admin = Admin.create(settings)) {
            admin.listTopics().names().get(60, TimeUnit.SECONDS);
            say("connected");
            for (String name = lines.readLine(); name != null; name = lines.readLine()) {
                create(admin, name);
            }
        }
    }

    private static void create(Admin admin, String name) throws Exception {
        long began = System.nanoTime();
        NewTopic topic = new NewTopic(name, Optional.of(1), Optional.empty());
        try {
            admin.createTopics(List.of(topic)).all().get(120, TimeUnit.SECONDS);
            say("created " + name + " " + (System.nanoTime() - began) / 1_000_000);
        } catch (ExecutionException error) {
            say("failed " + name + " " + error.getCause());
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
