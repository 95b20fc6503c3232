"""A node's folder: its interface, the real file system behind it, and what disk errors mean.

Here lives the only code that opens files for writing. Nothing here knows what a file holds, and
nothing here opens a socket. Door: every module but `thread`.
"""
