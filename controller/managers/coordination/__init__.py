"""The managers of coordination: sessions, their entries, and keys (KIP-30, ADR 0055)."""
