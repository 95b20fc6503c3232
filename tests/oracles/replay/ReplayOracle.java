package org.apache.kafka.image.loader;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.SupportedConfigChecker;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Replays a metadata log with Kafka's own loader, as a broker does, and answers with Kafka's images.
 *
 * A line in is {"flush": [batch numbers], "batches": [[offset, epoch, timestamp, [[id, version, data], ...]], ...]}.
 * A line out is {"images": [...]}, one after each batch that "flush" names, each with the records that Kafka would
 * write into its snapshot; or {"error": "..."}.
 */
public final class ReplayOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final MetadataVersion LEVEL = MetadataVersion.fromFeatureLevel((short) 33);

    private ReplayOracle() {
    }

    /** Answers lines until the input ends; an empty line asks for what was answered so far. */
    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.flush();
            } else {
                out.write(JSON.writeValueAsString(answer(JSON.readTree(line))));
                out.newLine();
            }
        }
        out.flush();
    }

    private static ObjectNode answer(JsonNode asked) {
        ObjectNode said = JSON.createObjectNode();
        try {
            Set<Integer> flush = new HashSet<>();
            asked.get("flush").forEach(number -> flush.add(number.intValue()));
            MetadataImage[] image = {MetadataImage.EMPTY};
            MetadataBatchLoader loader = new MetadataBatchLoader(
                new LogContext(), Time.SYSTEM,
                (message, cause) -> new RuntimeException(message, cause),
                (delta, made, manifest) -> image[0] = made,
                SupportedConfigChecker.TRUE);
            loader.resetToImage(MetadataImage.EMPTY);
            ArrayNode images = said.putArray("images");
            int number = 0;
            for (JsonNode batch : asked.get("batches")) {
                LeaderAndEpoch leader = new LeaderAndEpoch(OptionalInt.of(1), batch.get(1).intValue());
                List<ApiMessageAndVersion> records = new ArrayList<>();
                for (JsonNode record : batch.get(3)) records.add(message(record));
                loader.loadBatch(
                    Batch.data(batch.get(0).longValue(), batch.get(1).intValue(), batch.get(2).longValue(), 1, records),
                    leader);
                if (flush.contains(number++)) {
                    loader.maybeFlushBatches(leader, true);
                    images.add(show(image[0]));
                }
            }
        } catch (RuntimeException error) {
            said.removeAll();
            Throwable deepest = error;
            while (deepest.getCause() != null) deepest = deepest.getCause();
            said.put("error", error.getMessage() + " / " + deepest);
        }
        return said;
    }

    private static ApiMessageAndVersion message(JsonNode record) {
        short version = record.get(1).shortValue();
        return new ApiMessageAndVersion(
            MetadataJsonConverters.readJson(record.get(2), record.get(0).shortValue(), version), version);
    }

    private static ObjectNode show(MetadataImage image) {
        ObjectNode shown = JSON.createObjectNode();
        shown.put("offset", image.highestOffsetAndEpoch().offset());
        shown.put("epoch", image.highestOffsetAndEpoch().epoch());
        ObjectNode features = shown.putObject("features");
        image.features().finalizedVersions().forEach(features::put);
        image.features().metadataVersion().ifPresent(level -> features.put("metadata.version", level.featureLevel()));
        ArrayNode records = shown.putArray("records");
        List<ApiMessageAndVersion> written = snapshot(image);
        for (ApiMessageAndVersion each : written) {
            ArrayNode record = records.addArray();
            record.add(each.message().apiKey());
            record.add(MetadataJsonConverters.writeJson(each.message(), each.version()));
        }
        shown.put("reloads", reloads(image, written));
        return shown;
    }

    private static List<ApiMessageAndVersion> snapshot(MetadataImage image) {
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(LEVEL)
            .setEligibleLeaderReplicasEnabled(true)
            .setLossHandler(loss -> {
                throw loss;
            })
            .build());
        writer.close(true);
        return writer.records();
    }

    /** Returns whether Kafka's snapshot of an image gives an image with the same snapshot. */
    private static boolean reloads(MetadataImage image, List<ApiMessageAndVersion> written) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        written.forEach(each -> delta.replay(each.message()));
        delta.finishSnapshot();
        return new HashSet<>(snapshot(delta.apply(image.provenance()))).equals(new HashSet<>(written));
    }
}
