"""A server for protocols that are more than requests and replies: it carries bytes, and knows none.

`interface` is what a session and its connection see of each other, `server` the TCP and TLS server.
Everything before the first byte of the protocol is that of `runtime.sockets`.
"""
