"""Records, images, deltas and messages, without I/O: nothing here reads a clock or a disk."""
