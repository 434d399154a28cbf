"""What the hook and the sidecar cost here; `python -m bench --help`."""
