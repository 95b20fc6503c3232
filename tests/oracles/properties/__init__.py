"""Compares how we read files of properties with Java's own `Properties.load`.

`cases` draws contents from a seed. `answers.txt` is the table of Java's answers that `make test`
uses. The program needs a JDK 17 or later, and nothing of Kafka's.
"""

from pathlib import Path
from typing import Final

JAVA: Final = Path(__file__).parent / "PropertiesOracle.java"
TABLE: Final = Path(__file__).parent / "answers.txt"
