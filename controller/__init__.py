"""The controllers: one active, the others standing by, all with the same log and image."""
