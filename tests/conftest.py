"""Hypothesis takes as long as it needs: on a busy machine an example may be slow.

Rule: `deadline` and `too_slow` are set here and nowhere else. A test only sets its `max_examples`.
In CI the parent is Hypothesis' own profile `ci`, so examples there are the same in each run.
"""

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "logberg",
    settings(),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("logberg")

# Controllers that tests start as processes compare what they encode (ADR 0045).
os.environ["LOGBERG_COMPARE_RECORDS"] = "1"

# Whoever runs the tests in the background of a shell leaves them SIGINT ignored, and the commands
# that they start would inherit that. They are to end at Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
