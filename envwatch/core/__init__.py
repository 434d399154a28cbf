"""Decisions without I/O: events come in with the time, effects go out."""
