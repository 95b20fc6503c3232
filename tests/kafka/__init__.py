"""Apache Kafka's own brokers, clients and tests on our controllers.

Rule: these tests run only with LOGBERG_KAFKA=1 (`make kafka`): they need Java and Maven, and take
minutes.
"""
