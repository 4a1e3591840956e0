"""DP-SGD: clipping engines, Poisson sampling by group, noise, and the loop that runs one phase. It never sees ε."""
