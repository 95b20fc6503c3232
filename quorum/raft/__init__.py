"""PySyncObj and what goes in and comes out: the core, its seams, proposals, committed entries.

Here lives what knows the library's calls; the rules that make it safe live in `quorum.guard`.
Door: every module but `seams`, which only `core` uses.
"""
