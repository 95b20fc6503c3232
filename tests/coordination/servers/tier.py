"""Whether tests may fetch and start the servers of other makers.

Rule: they run only when `LOGBERG_SERVERS` is set, as `make conformance` does: they fetch jars and
take minutes. Otherwise, and where a tool is missing, they say "not run" and why.
"""

import os


def not_run_reason() -> str | None:
    """Why such tests don't run here; None: they do."""
    if os.environ.get("LOGBERG_SERVERS"):
        return None
    return "not run: servers of other makers are fetched only with LOGBERG_SERVERS=1"
