"""What a request needs to be allowed, and whether its caller has it (ADR 0086).

Here lives the table of rights by route (`route_access`), what a request needs by what it says
(`request_needs`), and the guard that asks the entries of an image (`guard`). Nothing here answers a
request or changes the state. `controller.http` asks when a request arrives and when it is answered,
`controller.leader` when a change is decided.
"""
