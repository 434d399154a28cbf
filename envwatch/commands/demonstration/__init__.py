"""What `envwatch demo` is made of: a stage, kernels and a notebook on it, the story."""
