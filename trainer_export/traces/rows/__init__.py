"""From triplets to training rows, and why consecutive calls do not merge into one row."""
