"""The ISRs of the example service over time, as a picture."""
