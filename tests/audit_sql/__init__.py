"""The audit a third time, in SQL over the kept log; it shares no code with a fold."""
