"""What `envwatch demo` is made of: a stage, kernels on it, and the story."""
