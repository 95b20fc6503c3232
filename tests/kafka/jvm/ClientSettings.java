// What a client is told: where the brokers are, and a file of properties if an argument names one.

import java.io.FileInputStream;
import java.io.IOException;
import java.util.Properties;

final class ClientSettings {
    private ClientSettings() {}

    static Properties of(String bootstrap, String[] arguments, int place) throws IOException {
        Properties settings = new Properties();
        if (arguments.length > place) {
            try (FileInputStream file = new FileInputStream(arguments[place])) {
                settings.load(file);
            }
        }
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }
}
