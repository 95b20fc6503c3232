package org.apache.kafka.metadata.authorizer;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/** Answers what Kafka's own StandardAuthorizer says to an action. A line in is a case of cases.py; a line out is ALLOWED or DENIED. */
public final class AclOracle {
    private AclOracle() {
    }

    /** Answers lines until the input ends; an empty line asks for what was answered so far. */
    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.flush();
            } else {
                out.write(answer(line.split(" \\| ")));
                out.newLine();
            }
        }
        out.flush();
    }

    private static String answer(String[] parts) throws IOException {
        String[] ask = parts[0].split(" ");
        try (Metrics metrics = new Metrics(); StandardAuthorizer authorizer = new StandardAuthorizer()) {
            Map<String, Object> configs = new HashMap<>();
            configs.put("node.id", "1");
            configs.put(StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, ask[5]);
            if (!ask[6].equals("-")) configs.put(StandardAuthorizer.SUPER_USERS_CONFIG, ask[6]);
            authorizer.configure(configs);
            authorizer.withPluginMetrics(new PluginMetricsImpl(metrics, Map.of()));
            for (int i = 1; i < parts.length; i++) authorizer.addAcl(new Uuid(1, i), acl(parts[i].split(" ")));
            authorizer.completeInitialLoad();
            Action action = new Action(
                AclOperation.valueOf(ask[2]),
                new ResourcePattern(ResourceType.valueOf(ask[3]), ask[4], PatternType.LITERAL),
                1, false, false);
            return authorizer.authorize(new Caller(ask[0], ask[1]), List.of(action)).get(0).toString();
        } catch (RuntimeException error) {
            return "error=" + error;
        }
    }

    private static StandardAcl acl(String[] words) {
        return new StandardAcl(
            ResourceType.valueOf(words[3]),
            words[5],
            PatternType.valueOf(words[4]),
            words[1],
            words[6],
            AclOperation.valueOf(words[2]),
            AclPermissionType.valueOf(words[0]));
    }

    private static final class Caller implements AuthorizableRequestContext {
        private final KafkaPrincipal principal;
        private final InetAddress address;

        Caller(String principal, String address) throws IOException {
            String[] words = principal.split(":", 2);
            this.principal = new KafkaPrincipal(words[0], words[1]);
            this.address = InetAddress.getByName(address);
        }

        @Override public String listenerName() {
            return "L";
        }

        @Override public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        @Override public KafkaPrincipal principal() {
            return principal;
        }

        @Override public InetAddress clientAddress() {
            return address;
        }

        @Override public int requestType() {
            return 0;
        }

        @Override public int requestVersion() {
            return 0;
        }

        @Override public String clientId() {
            return "c";
        }

        @Override public int correlationId() {
            return 0;
        }
    }
}
