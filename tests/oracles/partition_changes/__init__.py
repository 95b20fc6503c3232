"""Compares our change of a partition with that of Kafka's PartitionChangeBuilder.

`lines` is the text that both sides read. `drawing` draws cases from a seed. `ours` and the Java
program `PartitionChangeOracle` answer them. `comparing` judges the answers, and `differences` lists
where we mean to differ. `answers.txt` is the table of Kafka's answers that `make test` uses.
"""

from pathlib import Path
from typing import Final

JAVA: Final = Path(__file__).parent / "PartitionChangeOracle.java"
JAVA_CLASS: Final = "org.apache.kafka.controller.PartitionChangeOracle"
