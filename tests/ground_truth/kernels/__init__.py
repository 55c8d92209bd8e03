"""Ground truth from real kernels: programs over links, with samples of the kernels' sockets."""
