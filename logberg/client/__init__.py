"""How a program asks the controllers: requests, retries, typed answers, credentials.

Here lives what sends a request and reads its answer, for commands and for other programs alike.
Nothing here prints, reads the command line or starts a process. Door: every module but
`asking`, `client_operations`, `doubt`, `operations` and `tries`.
"""
