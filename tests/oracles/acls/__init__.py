"""Compares our decision on an action with that of Kafka's StandardAuthorizer.

`cases` draws entries and actions from a seed and shows them as lines, which the Java program
`AclOracle` answers. `answers.txt` is the table of Kafka's answers that `make test` uses.
"""

from pathlib import Path
from typing import Final

JAVA: Final = Path(__file__).parent / "AclOracle.java"
JAVA_CLASS: Final = "org.apache.kafka.metadata.authorizer.AclOracle"
TABLE: Final = Path(__file__).parent / "answers.txt"
