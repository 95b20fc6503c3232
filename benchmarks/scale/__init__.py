"""What very large and very distant clusters need: the tables of docs/scale.md."""
