import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Random;
import java.util.StringJoiner;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Draws metadata records by the schemas in Kafka's own generated classes, and writes them with Kafka's serde.
 *
 * A line in is [id, version, seed]; a line out is the record's bytes in hex, or "error: ...". For the line [] it is
 * every type that this Kafka has: name:id:lowest:highest version, with spaces between.
 */
public final class DrawnRecords {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();
    private static final int[] NUMBERS = {0, 1, 2, 3, 100};
    private static final String[] TEXTS = {"a", "orders", "", "rack-\u00e4", "x".repeat(300), "4"};

    private DrawnRecords() {
    }

    /** Answers lines until the input ends; an empty line asks for what was answered so far. */
    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.flush();
            } else {
                JsonNode asked = JSON.readTree(line);
                out.write(asked.isEmpty() ? types() : drawn(asked));
                out.newLine();
            }
        }
        out.flush();
    }

    private static String types() {
        StringJoiner all = new StringJoiner(" ");
        for (MetadataRecordType type : MetadataRecordType.values()) {
            String name = type.newMetadataRecord().getClass().getSimpleName();
            all.add(name + ":" + type.id() + ":" + type.lowestSupportedVersion() + ":" + type.highestSupportedVersion());
        }
        return all.toString();
    }

    private static String drawn(JsonNode asked) {
        try {
            short id = asked.get(0).shortValue();
            short version = asked.get(1).shortValue();
            Random random = new Random(asked.get(2).longValue());
            Class<?> kind = MetadataRecordType.fromId(id).newMetadataRecord().getClass();
            Schema schema = ((Schema[]) kind.getField("SCHEMAS").get(null))[version];
            return bytes(new ApiMessageAndVersion(
                MetadataJsonConverters.readJson(struct(schema, random), id, version), version));
        } catch (ReflectiveOperationException | RuntimeException error) {
            return "error: " + error;
        }
    }

    private static ObjectNode struct(Schema schema, Random random) {
        ObjectNode found = NODES.objectNode();
        for (BoundField bound : schema.fields()) {
            Type type = bound.def.type;
            if (type instanceof TaggedFields) {
                for (Field tagged : ((TaggedFields) type).fields().values()) {
                    if (random.nextInt(3) > 0) {
                        found.set(camel(tagged.name), value(tagged.type, random));
                    }
                }
            } else {
                found.set(camel(bound.def.name), value(type, random));
            }
        }
        return found;
    }

    private static JsonNode value(Type type, Random random) {
        if (type.isNullable() && random.nextInt(4) == 0) {
            return NODES.nullNode();
        }
        if (type.isArray()) {
            ArrayNode found = NODES.arrayNode();
            for (int left = random.nextInt(4); left > 0; left--) {
                found.add(value(type.arrayElementType().orElseThrow(), random));
            }
            return found;
        }
        if (type instanceof Schema) {
            return struct((Schema) type, random);
        }
        return scalar(type.toString(), random);
    }

    private static JsonNode scalar(String type, Random random) {
        boolean most = random.nextInt(8) == 0;
        int number = NUMBERS[random.nextInt(NUMBERS.length)];
        switch (type) {
            case "BOOLEAN":
                return NODES.booleanNode(random.nextBoolean());
            case "INT8":
                return NODES.numberNode((byte) random.nextInt(2));
            case "INT16":
                return NODES.numberNode(most ? Short.MAX_VALUE : (short) number);
            case "UINT16":
                return NODES.numberNode(most ? 65535 : number);
            case "INT32":
                return NODES.numberNode(most ? Integer.MAX_VALUE : number);
            case "INT64":
                return NODES.numberNode(most ? Long.MAX_VALUE : number);
            case "FLOAT64":
                return NODES.numberNode(random.nextInt(4000) / 8.0);
            case "UUID":
                return NODES.textNode(new Uuid(random.nextLong(), random.nextLong()).toString());
            case "STRING":
            case "NULLABLE_STRING":
            case "COMPACT_STRING":
            case "COMPACT_NULLABLE_STRING":
                return NODES.textNode(TEXTS[random.nextInt(TEXTS.length)]);
            case "BYTES":
            case "NULLABLE_BYTES":
            case "COMPACT_BYTES":
            case "COMPACT_NULLABLE_BYTES":
                byte[] data = new byte[random.nextInt(40)];
                random.nextBytes(data);
                return NODES.binaryNode(data);
            default:
                throw new IllegalArgumentException("no value of the type " + type);
        }
    }

    private static String camel(String name) {
        StringBuilder found = new StringBuilder();
        for (String word : name.split("_")) {
            found.append(found.length() == 0 ? word : word.substring(0, 1).toUpperCase() + word.substring(1));
        }
        return found.toString();
    }

    private static String bytes(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(SERDE.recordSize(record, cache));
        SERDE.write(record, cache, new ByteBufferAccessor(buffer));
        return HexFormat.of().formatHex(buffer.array());
    }
}
