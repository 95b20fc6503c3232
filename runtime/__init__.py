"""Clock, dice, disk and network: the only floor that touches the world."""
