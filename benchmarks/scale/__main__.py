"""`python -m benchmarks.scale` prints what 100,000 brokers and 10,000,000 partitions need."""

from benchmarks.scale.needs import costs_table, needs_table

print(costs_table(), needs_table(), sep="\n")
