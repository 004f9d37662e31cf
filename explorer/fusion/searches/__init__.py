"""Searches over whole plans, one per module; ``registry`` has them by name."""
