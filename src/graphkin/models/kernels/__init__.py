"""Everything about speed: kernels compiled by numba, and the plain torch that they are held to."""
