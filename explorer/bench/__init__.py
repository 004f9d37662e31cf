"""Benchmarks behind `explorer bench NAME`: each module has `run() -> dict`."""
