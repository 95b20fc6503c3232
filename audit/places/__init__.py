"""Where logs are: folders, URLs and archives, opened read-only as replicas.

This room finds and opens files. It doesn't know what a record means. Door: every module but
`archives` and `streams`.
"""
