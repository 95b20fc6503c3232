"""The event loop's time: fair passes, long work in slices, lateness, and the pauses of memory.

Here lives the code that keeps each pass of the loop short, and measures it. Nothing here opens a
socket or a file, or knows what the work is about. Door: every module.
"""
