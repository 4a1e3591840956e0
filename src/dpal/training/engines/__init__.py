"""Clipping engines: records in, the sum of their clipped gradients out, fast.

Read in this order: `clipping` (norms, sums and what rounding can add), `engine` (what every engine does),
`engine_choice` (which one a model gets), `engine_checks` (what an engine must pass before it is trusted, on
`synthetic_records`), then `fused_engine`, the default. It builds on `layer_capture` (one forward and backward pass
that keeps what gradients are made of), `matrix_gradients` (norms and sums from that), `compilation` (CUDA graphs) and
`tied_layers`. On a GPU `custom_operators` makes the kernels of `convolution_kernels` and `group_norm_kernels` known
to torch. `opacus_engine` and `vmap_engine` train models that the fused engine does not cover.
"""
