"""The trail of refused attempts: counted on each controller, written into the log by the leader.

Rule: counts are exact, and memory and log bytes are bounded, whatever strangers send. A report is
written exactly once. What a controller has not reported yet dies with its process (ADR 0090).

- `recording`: which attempts are recorded, and in what detail;
- `counting`: counts attempts by kind, in bounded memory;
- `reports`: the bytes of a report from one controller to the leader;
- `reporting`: cuts reports, and sends each until the log has it;
- `writing`: the leader's part, within a budget of bytes;
- `parts`: the parts of this room, wired.

The door is `parts`.
"""
