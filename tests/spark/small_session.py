"""A session for small data: there, compiling takes longer than running."""

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For the variable JAVA_TOOL_OPTIONS."""
SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
