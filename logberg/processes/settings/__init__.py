"""Settings of a node: what its file may say, what is wrong with it, and where else they come from.

Here lives a class for each file and each section of it, and what checks them. Nothing here starts
anything. Door: `node_settings`, `controller_settings`, `broker_settings`, and `settings_files`,
which reads a file.
"""
