"""Requests: their interface, and the HTTP server and client that carry them.

Here lives everything that knows HTTP. Nothing here knows a route or what a body means: the server
calls one handler with a `requests.Request`. Door: `callers`, `client`, `exposure`, `origins`,
`requests` and `server`.
"""
