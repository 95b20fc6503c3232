"""The quorum alone, and the loss of its leader."""
