"""The kernels that the fast paths of several supernets share: same results as the plain path, fewer passes."""
