"""Clock, randomness, disk and network: the only package that calls the operating system."""
