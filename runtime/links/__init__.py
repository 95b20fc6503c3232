"""Links between controllers: their interface, and one implementation over TCP.

Here lives the code that dials peers, greets them and carries their frames. Nothing here knows what
a frame says, and nothing here knows HTTP. Door: `interface` and `tcp`.
"""
