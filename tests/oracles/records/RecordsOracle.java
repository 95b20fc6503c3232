import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Writes metadata records with Kafka's own serde.
 *
 * A line in is [id, version, data, "our bytes in hex"]. A line out is Kafka's bytes of that data, a space, and the bytes
 * that Kafka writes after it read ours; or "error: ...".
 */
public final class RecordsOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();

    private RecordsOracle() {
    }

    /** Answers lines until the input ends; an empty line asks for what was answered so far. */
    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.flush();
            } else {
                out.write(answer(JSON.readTree(line)));
                out.newLine();
            }
        }
        out.flush();
    }

    private static String answer(JsonNode asked) {
        try {
            short version = asked.get(1).shortValue();
            ApiMessageAndVersion made = new ApiMessageAndVersion(
                MetadataJsonConverters.readJson(asked.get(2), asked.get(0).shortValue(), version), version);
            byte[] ours = HexFormat.of().parseHex(asked.get(3).asText());
            ApiMessageAndVersion read = SERDE.read(new ByteBufferAccessor(ByteBuffer.wrap(ours)), ours.length);
            return bytes(made) + " " + bytes(read);
        } catch (RuntimeException error) {
            return "error: " + error;
        }
    }

    private static String bytes(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = SERDE.recordSize(record, cache);
        ByteBuffer buffer = ByteBuffer.allocate(size);
        SERDE.write(record, cache, new ByteBufferAccessor(buffer));
        return HexFormat.of().formatHex(buffer.array());
    }
}
