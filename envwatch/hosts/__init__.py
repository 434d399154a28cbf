"""What programs that start kernels load of envwatch, and what is installed for them."""
