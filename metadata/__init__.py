"""Records, images, deltas and messages. Nothing here does I/O or reads a clock."""
