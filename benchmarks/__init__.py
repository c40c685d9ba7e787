"""Measurements, one file a subject. Each says its own in its docstring; results worth keeping are in RESULTS.md."""
