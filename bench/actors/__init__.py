"""What a benchmark starts beside the things that it measures."""
