package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;
import java.util.*;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.metadata.*;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.DynamicBrokerConfig;

/**
 * Asks Kafka's own ConfigurationControlManager, with the validator of its controllers.
 *
 * Reads one case a line from standard input, JSON; writes the case with Kafka's answers.
 */
public class ConfigOracle {
  static final ObjectMapper JSON = new ObjectMapper();

  static ConfigResource resource(JsonNode row) {
    return new ConfigResource(ConfigResource.Type.valueOf(row.get(0).asText().toUpperCase().replace('-', '_')), row.get(1).asText());
  }

  static String text(JsonNode node) { return node.isNull() ? null : node.asText(); }

  public static void main(String[] args) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      ObjectNode row = (ObjectNode) JSON.readTree(line);
      answer(row);
      System.out.println(JSON.writeValueAsString(row));
    }
  }

  static void answer(ObjectNode row) throws Exception {
    Properties props = new Properties();
    props.put("process.roles", "controller");
    props.put("node.id", "9");
    props.put("controller.quorum.voters", "9@localhost:9093");
    props.put("listeners", "CONTROLLER://localhost:9093");
    props.put("controller.listener.names", "CONTROLLER");
    JsonNode own = row.path("static");
    own.fieldNames().forEachRemaining(k -> props.put(k, own.get(k).asText()));
    var config = kafka.server.KafkaConfig.fromProps(props, false);
    var features = new FeatureControlManager.Builder().setQuorumFeatures(new QuorumFeatures(9, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(9))).build();
    features.replay(new FeatureLevelRecord().setName("metadata.version").setFeatureLevel((short) 30));
    if (row.path("elr").asBoolean()) features.replay(new FeatureLevelRecord().setName("eligible.leader.replicas.version").setFeatureLevel((short) 1));
    Set<String> topics = new HashSet<>(), brokers = new HashSet<>();
    row.path("topics").forEach(n -> topics.add(n.asText()));
    row.path("brokers").forEach(n -> brokers.add(n.asText()));
    var manager = new ConfigurationControlManager.Builder()
      .setKafkaConfigSchema(kafka.server.KafkaRaftServer.configSchema())
      .setValidator(new kafka.server.ControllerConfigurationValidator(config))
      .setStaticConfig((Map) config.originals())
      .setNodeId(9)
      .setFeatureControl(features)
      .setExistenceChecker(r -> {
        switch (r.type()) {
          case TOPIC: if (!topics.contains(r.name())) throw new UnknownTopicOrPartitionException("The topic '" + r.name() + "' does not exist."); break;
          case BROKER: if (!r.name().isEmpty() && !r.name().equals("9") && !brokers.contains(r.name())) throw new BrokerIdNotRegisteredException("No broker with id " + r.name() + " found."); break;
          default: break;
        }
      })
      .build();
    for (JsonNode c : row.path("before")) {
      ConfigResource r = resource(c);
      manager.replay(new ConfigRecord().setResourceType(r.type().id()).setResourceName(r.name()).setName(c.get(2).asText()).setValue(text(c.get(3))));
    }
    if (row.has("ask")) {
      Map<ConfigResource, Map<String, Map.Entry<AlterConfigOp.OpType, String>>> ask = new LinkedHashMap<>();
      for (JsonNode c : row.path("ask"))
        ask.computeIfAbsent(resource(c), x -> new LinkedHashMap<>()).put(c.get(2).asText(), new AbstractMap.SimpleEntry<>(AlterConfigOp.OpType.valueOf(c.get(3).asText().toUpperCase()), text(c.get(4))));
      ArrayNode answers = row.putArray("answers");
      ControllerResult<Map<ConfigResource, ApiError>> result = manager.incrementalAlterConfigs(ask, false, false);
      for (ConfigResource r : ask.keySet()) {
        ApiError e = result.response().get(r);
        answers.add(JSON.createArrayNode().add(r.type().name().toLowerCase().replace('_', '-')).add(r.name()).add(e.error().name()).add(e.message()));
      }
      ArrayNode records = row.putArray("records");
      for (ApiMessageAndVersion m : result.records()) {
        if (m.message() instanceof ConfigRecord c)
          records.add(JSON.createArrayNode().add(ConfigResource.Type.forId(c.resourceType()).name().toLowerCase().replace('_', '-')).add(c.resourceName()).add(c.name()).add(c.value()));
        else if (m.message() instanceof ClearElrRecord c) records.add(JSON.createArrayNode().add("clear-elr").add(c.topicName()));
        else records.add(m.message().toString());
      }
      // What a broker checks before it forwards a change of its own configs.
      ArrayNode broker = JSON.createArrayNode();
      for (var e : ask.entrySet()) if (e.getKey().type() == ConfigResource.Type.BROKER) {
        Properties p = new Properties();
        manager.getConfigs(e.getKey()).forEach(p::put);
        boolean simple = true;
        for (var op : e.getValue().entrySet()) switch (op.getValue().getKey()) {
          case SET: p.put(op.getKey(), op.getValue().getValue()); break;
          case DELETE: p.remove(op.getKey()); break;
          default: simple = false;
        }
        String why = null;
        if (simple) try { DynamicBrokerConfig.validateConfigs(new Properties(), p, !e.getKey().name().isEmpty()); } catch (Throwable t) { why = t.getClass().getSimpleName() + ": " + t.getMessage(); }
        broker.add(why);
      }
      if (broker.size() > 0) row.set("brokerChecks", broker);
    }
    if (row.has("effective")) {
      ObjectNode found = JSON.createObjectNode();
      String topic = row.get("effective").get(0).asText();
      for (int i = 1; i < row.get("effective").size(); i++) {
        String key = row.get("effective").get(i).asText();
        ConfigEntry e = manager.getTopicConfig(topic, key);
        found.putArray(key).add(e.value()).add(e.source().name()).add(e.isSensitive());
      }
      row.set("found", found);
    }
  }
}
