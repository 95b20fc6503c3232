"""Kafka's own answers about configs, kept as data.

`Definitions.java` prints the definitions of Kafka's keys. `ConfigOracle.java` asks Kafka's
ConfigurationControlManager, with the validator of its controllers, and the checks that its brokers
make before they forward a change. With JDK 17 or later and Maven, in this folder:

    mvn dependency:copy-dependencies -DoutputDirectory=/tmp/jars -DincludeScope=runtime
    javac -d /tmp/classes -cp '/tmp/jars/*' Definitions.java ConfigOracle.java
    java -cp '/tmp/classes:/tmp/jars/*' Definitions > /tmp/raw.json

The other steps run from the repository's root; each module says what it reads and writes:
`definitions`, then `questions`, then `java … org.apache.kafka.controller.ConfigOracle`, then
`answers`. `make test` needs none of this: it reads what is kept here.
"""
