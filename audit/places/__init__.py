"""Where logs are: folders, URLs and archives, opened read-only as replicas.

Here lives what finds and reads files. Nothing here knows what a record means.
Door: every module but `archives` and `streams`.
"""
