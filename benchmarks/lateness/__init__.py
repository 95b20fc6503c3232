"""Every route and every record as load on a controller's loop, whose slices of work are judged."""
