"""Answers what Kafka's clients ask a broker about the cluster, topics and configs (ADR 0074).

For brokers that are Logberg's own agents: Metadata, DescribeCluster, DescribeTopicPartitions,
DescribeConfigs, ListConfigResources and DescribeLogDirs. FindCoordinator is refused with a
sentence. A controller answers DescribeCluster and DescribeConfigs, as Kafka's controllers do.

Rule: every answer comes from one image, which the process has already. Nothing here asks anybody.

The door: `agent_handlers`, `controller_handlers`, and `image_source`, which says what they need.
"""
