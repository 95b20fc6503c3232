"""Exports the log as events of other systems: OCSF as JSON, and CEF lines.

Rule: what is exported is what the log says: one event for each batch of changes that count, and one
for each record of refused attempts, with its count. Text from the log can't break a line or a field
of either format.

- `events`: what is exported, before it has a format;
- `ocsf`: the Open Cybersecurity Schema Framework, version 1.8;
- `cef`: the Common Event Format, version 0.
"""
