"""Faults of the leading controller while clients produce, consume and change, and what they lost.

`load` runs the clients. `striking` has the faults. `verdict` judges what the clients were told
against what brokers hold. `run` joins them, on our controllers and on stock KRaft alike.
"""
