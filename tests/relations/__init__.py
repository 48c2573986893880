"""Relations between columns."""
