"""The commands of `envwatch`, one file each."""
