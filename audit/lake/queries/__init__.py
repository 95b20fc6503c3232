"""A catalogue of ready queries over kept tables, as SQL that people may copy and change.

Each query is a file. Its first comment names what it is about, the second says what it answers;
then come its parameters. `catalogue` reads the files, `running` runs them in DuckDB.
"""
