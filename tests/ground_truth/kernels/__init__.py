"""Ground truth from real kernels: real programs over links, with samples of the kernels' sockets."""
