"""What operators use beside a running cluster: checks, the support bundle, the live view.

Here lives what gathers from all nodes and judges or shows it. Nothing here changes a cluster, and
nothing here prints. Door: every module.
"""
