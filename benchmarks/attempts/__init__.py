"""What callers who are refused cost a cluster, and what stands in its log afterwards."""
