import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.*;
import org.apache.kafka.server.config.*;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import com.fasterxml.jackson.databind.*;

/** Prints Kafka's own config definitions as JSON: facts only. */
public class Definitions {
  static Object field(Object o, String name) throws Exception {
    for (Class<?> c = o.getClass(); c != null; c = c.getSuperclass())
      for (var f : c.getDeclaredFields()) if (f.getName().equals(name)) { f.setAccessible(true); return f.get(o); }
    return null;
  }
  static Object val(Validator v) throws Exception {
    if (v == null) return null;
    Map<String,Object> m = new LinkedHashMap<>();
    m.put("class", v.getClass().getName());
    m.put("text", v.toString());
    for (String n : List.of("min","max","validStrings","validString","isEmptyAllowed","isNullAllowed","maxSize","validators")) {
      Object o = field(v, n);
      if (o instanceof ConfigDef.ValidString vs) o = field(vs, "validStrings");
      if (o instanceof List<?> l && !l.isEmpty() && l.get(0) instanceof Validator) { List<Object> r = new ArrayList<>(); for (Object x : l) r.add(val((Validator) x)); o = r; }
      if (o != null) m.put(n, o);
    }
    return m;
  }
  static Map<String,Object> keys(Map<String, ConfigKey> defs) throws Exception {
    Map<String,Object> out = new TreeMap<>();
    for (ConfigKey k : defs.values()) {
      Map<String,Object> m = new LinkedHashMap<>();
      m.put("type", k.type.name());
      Object d = k.defaultValue;
      m.put("default", d == null || d == ConfigDef.NO_DEFAULT_VALUE ? null : ConfigDef.convertToString(d, k.type));
      if (d == ConfigDef.NO_DEFAULT_VALUE) m.put("required", true);
      if (k.internalConfig) m.put("internal", true);
      m.put("validator", val(k.validator));
      out.put(k.name, m);
    }
    return out;
  }
  public static void main(String[] a) throws Exception {
    Map<String,Object> out = new LinkedHashMap<>();
    out.put("topic", keys(LogConfig.configKeys()));
    out.put("broker", keys(AbstractKafkaConfig.CONFIG_DEF.configKeys()));
    out.put("group", keys(GroupConfig.CONFIG_DEF.configKeys()));
    out.put("clientMetrics", keys(ClientMetricsConfigs.configDef().configKeys()));
    Map<String,Object> syn = new TreeMap<>();
    for (var e : ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.entrySet()) {
      List<Object> l = new ArrayList<>();
      for (ConfigSynonym s : e.getValue()) l.add(List.of(s.name(), s.converter().apply("7")));
      syn.put(e.getKey(), l);
    }
    out.put("topicSynonyms", syn);
    Map<String,Object> gs = new TreeMap<>();
    for (var e : GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.entrySet()) gs.put(e.getKey(), e.getValue().orElse(null));
    out.put("groupSynonyms", gs);
    out.put("dynamicModes", new TreeMap<>(DynamicBrokerConfig.dynamicConfigUpdateModes()));
    out.put("dynamicSecurity", new TreeSet<>(DynamicBrokerConfig.DYNAMIC_SECURITY_CONFIGS));
    out.put("allDynamic", new TreeSet<>(DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS));
    Map<String,Object> bs = new TreeMap<>();
    for (String k : AbstractKafkaConfig.CONFIG_DEF.names()) { var l = DynamicBrokerConfig.brokerConfigSynonyms(k, false); if (l.size() != 1) bs.put(k, l); }
    out.put("brokerSynonyms", bs);
    out.put("dynamicConfigBroker", keys(DynamicConfig.Broker.class.getDeclaredMethods().length > 0 ? ((ConfigDef) Arrays.stream(DynamicConfig.Broker.class.getDeclaredFields()).filter(f -> f.getType() == ConfigDef.class).findFirst().map(f -> { try { f.setAccessible(true); return f.get(null); } catch (Exception x) { throw new RuntimeException(x); } }).orElse(new ConfigDef())).configKeys() : Map.of()));
    System.out.println(new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValueAsString(out));
  }
}
