import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Properties;
import java.util.TreeMap;

/**
 * Reads files of properties as Kafka does, by java.util.Properties. A line of input is the content of
 * a file, in hexadecimal digits. A line of output has its pairs, key=value, with a space between them,
 * both in hexadecimal digits of UTF-16; or the word refused.
 */
final class PropertiesOracle {
    private PropertiesOracle() {
    }

    public static void main(final String[] args) throws IOException {
        final BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        final StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.append(answer(HexFormat.of().parseHex(line))).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(final byte[] content) throws IOException {
        final Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(content));
        } catch (final IllegalArgumentException malformed) {
            return "refused";
        }
        final TreeMap<String, String> pairs = new TreeMap<>();
        for (final String key : properties.stringPropertyNames()) {
            pairs.put(hex(key), hex(properties.getProperty(key)));
        }
        final StringBuilder found = new StringBuilder();
        pairs.forEach((key, value) -> found.append(found.isEmpty() ? "" : " ")
                .append(key).append('=').append(value));
        return found.toString();
    }

    private static String hex(final String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_16BE));
    }
}
