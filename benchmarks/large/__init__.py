"""What takes many rounds, and who waits meanwhile."""
