"""The published schema of OCSF as the judge of what `logberg audit export --format ocsf` writes.

`facts.json` holds what the schema says of the classes and objects that we use: names of attributes,
which are required, their types, and the numbers of enums. `read_schema` made it from a checkout of
github.com/ocsf/ocsf-schema: `python -m tests.oracles.ocsf.read_schema FOLDER`.
"""
