"""Why a Spark job failed, in a sentence for whoever asked.

Rule: Spark wraps what a task raised in a page of its own. What we raised ourselves is a sentence
for people already, the last line of the Python traceback in that page; it is taken out. Anything
else is a defect, and its page is shown whole.
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
    """Return what an error of Spark's comes down to; None when it is nothing we know."""
    page = str(error)
    raised = _OURS.findall(page)
    if raised:
        ours, systems = raised[-1]
        return str(ours or systems)
    if _NO_MEMORY.search(page):
        return (
            "Spark ran out of memory: give it more (driver memory, or that of the cluster's "
            "executors), or ask for less of the log at a time"
        )
    return None
