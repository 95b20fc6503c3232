"""A cluster on this machine, for `up`, `demo` and programs: folders, certificates, processes.

Here lives what writes such a cluster's files, starts its processes and finds it again. Nothing here
prints or runs inside a controller. Door: every module but `child` and `local_ca`.
"""
