"""The audit as one HTML page for people: numbers, drawings, tables, and what is not proved."""
