"""Who decides: one manager a concern. Each reads an image, returns records, changes nothing."""
