"""The rules that make the core safe from outside; each module says which, and why.

Here lives what judges a message before the core sees it, and before an answer leaves. Nothing here
encodes bytes or opens a file. Door: every module but `appends`.
"""
