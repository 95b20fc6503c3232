package org.apache.kafka.controller;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.LeaderConstants;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Answers what Kafka's own PartitionChangeBuilder makes of a partition and a change.
 *
 * A line in is `STATE | CHANGE`, a line out is `RECORD | STATE AFTER IT`; lines.py says what the words mean. An empty line
 * asks for what was answered so far. It stands in Kafka's package because the classes of a reassignment are not public.
 */
public final class PartitionChangeOracle {
    private static final Uuid TOPIC = new Uuid(7, 7);
    private static final int EPOCH = 10;

    private PartitionChangeOracle() {
    }

    /** Answers lines until the input ends. */
    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII), 1 << 16);
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.US_ASCII), 1 << 16);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.flush();
            } else {
                out.write(answer(line));
                out.newLine();
            }
        }
        out.flush();
    }

    private static String answer(String line) {
        int bar = line.indexOf('|');
        Words change = new Words(line.substring(bar + 1));
        try {
            PartitionRegistration partition = partition(new Words(line.substring(0, bar)));
            PartitionChangeBuilder builder = builder(partition, change);
            ApiMessageAndVersion built = builder.build().orElse(null);
            if (built == null) return "none | " + shown(partition);
            PartitionChangeRecord record = (PartitionChangeRecord) built.message();
            return shown(record) + " | " + shown(partition.merge(record));
        } catch (RuntimeException error) {
            return "error=" + error.getClass().getSimpleName() + " |";
        }
    }

    private static PartitionRegistration partition(Words state) {
        int[] replicas = state.numbers("replicas");
        return new PartitionRegistration.Builder()
            .setReplicas(replicas)
            .setDirectories(state.has("dirs") ? state.directories("dirs") : DirectoryId.migratingArray(replicas.length))
            .setIsr(state.numbers("isr"))
            .setElr(state.numbers("elr"))
            .setLastKnownElr(state.numbers("last"))
            .setRemovingReplicas(state.numbers("removing"))
            .setAddingReplicas(state.numbers("adding"))
            .setLeader(state.number("leader", LeaderConstants.NO_LEADER))
            .setLeaderRecoveryState(state.has("recovering") ? LeaderRecoveryState.RECOVERING : LeaderRecoveryState.RECOVERED)
            .setLeaderEpoch(EPOCH)
            .setPartitionEpoch(EPOCH)
            .build();
    }

    private static PartitionChangeBuilder builder(PartitionRegistration partition, Words change) {
        List<Integer> alive = change.list("alive");
        Map<Integer, Uuid> defaults = change.pairs("default");
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition,
            TOPIC,
            0,
            alive::contains,
            MetadataVersion.fromFeatureLevel((short) change.number("level", 33)),
            change.number("min", 1),
            change.has("use-elr"));
        builder.setDefaultDirProvider(broker -> defaults.getOrDefault(broker, DirectoryId.UNASSIGNED));
        if (change.has("isr")) builder.setTargetIsr(change.list("isr"));
        if (change.has("replicas")) builder.setTargetReplicas(change.list("replicas"));
        if (change.has("removing")) builder.setTargetRemoving(change.list("removing"));
        if (change.has("adding")) builder.setTargetAdding(change.list("adding"));
        if (change.has("reassign")) reassign(builder, partition, change.list("reassign"));
        if (change.has("cancel")) cancel(builder, partition);
        if (change.has("elect")) builder.setElection(PartitionChangeBuilder.Election.valueOf(change.word("elect")));
        if (change.has("recovery")) builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of((byte) change.number("recovery", 0)));
        if (change.has("lost")) builder.setUncleanShutdownReplicas(change.list("lost"));
        change.pairs("dir").forEach(builder::setDirectory);
        return builder;
    }

    /** As ReplicationControlManager.changePartitionReassignment does: a list that comes out empty is not set. */
    private static void reassign(PartitionChangeBuilder builder, PartitionRegistration partition, List<Integer> target) {
        PartitionReassignmentReplicas reassignment = new PartitionReassignmentReplicas(
            new PartitionAssignment(Replicas.toList(partition.replicas), DirectoryOf.any()),
            new PartitionAssignment(target, DirectoryOf.any()));
        if (!reassignment.replicas().equals(Replicas.toList(partition.replicas))) builder.setTargetReplicas(reassignment.replicas());
        if (!reassignment.removing().isEmpty()) builder.setTargetRemoving(reassignment.removing());
        if (!reassignment.adding().isEmpty()) builder.setTargetAdding(reassignment.adding());
    }

    /** As ReplicationControlManager.cancelPartitionReassignment does, once it has allowed it. */
    private static void cancel(PartitionChangeBuilder builder, PartitionRegistration partition) {
        PartitionReassignmentRevert revert = new PartitionReassignmentRevert(partition);
        builder
            .setTargetIsr(revert.isr())
            .setTargetReplicas(revert.replicas())
            .setTargetRemoving(List.of())
            .setTargetAdding(List.of());
    }

    private static String shown(PartitionChangeRecord record) {
        StringBuilder text = new StringBuilder();
        if (record.leader() != LeaderConstants.NO_LEADER_CHANGE) put(text, "leader", Integer.toString(record.leader()));
        if (record.isr() != null) put(text, "isr", joined(record.isr()));
        if (record.eligibleLeaderReplicas() != null) put(text, "elr", joined(record.eligibleLeaderReplicas()));
        if (record.lastKnownElr() != null) put(text, "last", joined(record.lastKnownElr()));
        if (record.leaderRecoveryState() != LeaderRecoveryState.NO_CHANGE) {
            put(text, "recovery", Integer.toString(record.leaderRecoveryState()));
        }
        if (record.replicas() != null) put(text, "replicas", joined(record.replicas()));
        if (record.removingReplicas() != null) put(text, "removing", joined(record.removingReplicas()));
        if (record.addingReplicas() != null) put(text, "adding", joined(record.addingReplicas()));
        if (record.directories() != null) put(text, "dirs", letters(record.directories()));
        return text.toString();
    }

    private static String shown(PartitionRegistration partition) {
        StringBuilder text = new StringBuilder();
        put(text, "replicas", joined(Replicas.toList(partition.replicas)));
        put(text, "dirs", letters(List.of(partition.directories)));
        put(text, "isr", joined(Replicas.toList(partition.isr)));
        put(text, "elr", joined(Replicas.toList(partition.elr)));
        put(text, "last", joined(Replicas.toList(partition.lastKnownElr)));
        put(text, "removing", joined(Replicas.toList(partition.removingReplicas)));
        put(text, "adding", joined(Replicas.toList(partition.addingReplicas)));
        put(text, "leader", Integer.toString(partition.leader));
        if (partition.leaderRecoveryState == LeaderRecoveryState.RECOVERING) text.append(" recovering");
        put(text, "epochs", (partition.leaderEpoch - EPOCH) + "," + (partition.partitionEpoch - EPOCH));
        return text.toString();
    }

    private static void put(StringBuilder text, String name, String value) {
        if (text.length() > 0) text.append(' ');
        text.append(name).append('=').append(value);
    }

    private static String joined(List<Integer> numbers) {
        return numbers.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    private static String letters(List<Uuid> directories) {
        return directories.stream().map(DirectoryOf::letter).collect(Collectors.joining());
    }

    /** A directory is a letter: U unassigned, L lost, M migrating, or a small letter for one that has an id. */
    private static final class DirectoryOf {
        static Uuid uuid(char letter) {
            switch (letter) {
                case 'U': return DirectoryId.UNASSIGNED;
                case 'L': return DirectoryId.LOST;
                case 'M': return DirectoryId.MIGRATING;
                default: return new Uuid(1, letter);
            }
        }

        static String letter(Uuid directory) {
            if (directory.equals(DirectoryId.UNASSIGNED)) return "U";
            if (directory.equals(DirectoryId.LOST)) return "L";
            if (directory.equals(DirectoryId.MIGRATING)) return "M";
            return String.valueOf((char) directory.getLeastSignificantBits());
        }

        static org.apache.kafka.metadata.placement.DefaultDirProvider any() {
            return broker -> DirectoryId.UNASSIGNED;
        }
    }

    /** `name=value` and bare names, divided by spaces. */
    private static final class Words {
        private final Map<String, String> values = new HashMap<>();

        Words(String text) {
            for (String word : text.trim().split(" +")) {
                int equals = word.indexOf('=');
                if (equals < 0) values.put(word, "");
                else values.put(word.substring(0, equals), word.substring(equals + 1));
            }
        }

        boolean has(String name) {
            return values.containsKey(name);
        }

        String word(String name) {
            return values.get(name);
        }

        int number(String name, int otherwise) {
            String value = values.get(name);
            return value == null ? otherwise : Integer.parseInt(value);
        }

        List<Integer> list(String name) {
            String value = values.getOrDefault(name, "");
            List<Integer> numbers = new ArrayList<>();
            if (!value.isEmpty()) {
                for (String number : value.split(",")) numbers.add(Integer.valueOf(number));
            }
            return numbers;
        }

        int[] numbers(String name) {
            return Replicas.toArray(list(name));
        }

        Uuid[] directories(String name) {
            return word(name).chars().mapToObj(letter -> DirectoryOf.uuid((char) letter)).toArray(Uuid[]::new);
        }

        Map<Integer, Uuid> pairs(String name) {
            Map<Integer, Uuid> pairs = new LinkedHashMap<>();
            String value = values.getOrDefault(name, "");
            if (!value.isEmpty()) {
                for (String pair : value.split(",")) {
                    int colon = pair.indexOf(':');
                    pairs.put(Integer.valueOf(pair.substring(0, colon)), DirectoryOf.uuid(pair.charAt(colon + 1)));
                }
            }
            return pairs;
        }
    }
}
