"""I/O without decisions: performs the effects that `envwatch.core` asks for."""
