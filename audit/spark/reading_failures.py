"""Turns the failure of a Spark job into one sentence for the user.

Rule: Spark wraps an error of a task in a page of its own. An error of ours is already a sentence
for people: the last line of the Python traceback in that page. This module takes it out. Anything
else is a defect, and its page is shown as a whole.
"""

import re
from typing import Final

from pyspark.errors import PySparkException

SparkError: Final = PySparkException
"""The base of everything that Spark raises, for callers that may not import Spark."""

_OURS: Final = re.compile(
    r"^(?:logberg\.)?(?:audit|ledger|metadata|snapshots)(?:\.[a-z_]+)+\.[A-Za-z]+Error: (.+)$"
    r"|^((?:FileNotFound|Permission|OS|IO|Timeout|Connection[A-Za-z]*)Error: .+)$",
    re.MULTILINE,
)
_NO_MEMORY: Final = re.compile(r"OutOfMemoryError|Java heap space|SparkOutOfMemory|MemoryError")


def failure_sentence(error: BaseException) -> str | None:
    """Return the sentence in an error of Spark's; None if the error is unknown."""
    page = str(error)
    raised = _OURS.findall(page)
    if raised:
        ours, systems = raised[-1]
        return str(ours or systems)
    if _NO_MEMORY.search(page):
        return (
            "Spark ran out of memory. Give it more (driver memory, or that of the cluster's "
            "executors), or ask for a smaller part of the log"
        )
    return None
