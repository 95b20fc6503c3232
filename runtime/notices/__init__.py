"""Messages to other programs, one at a time: an HTTP request, a line of syslog.

Rule: each function sends one message within a time limit and tells whether it was taken. It tries
once and keeps nothing. Whoever calls keeps what must not be lost.
"""
