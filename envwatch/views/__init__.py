"""Textual widgets; they need the extra `tui`."""
