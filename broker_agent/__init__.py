"""The agent that runs beside a broker, as a library or as a process.

It registers the broker, sends heartbeats, holds the metadata image, and fences the broker when its
lease runs out.
"""
