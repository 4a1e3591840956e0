"""What makes clipping fast. Read engine, then fused (capture, matrix_gradients, tracing), then engine_choice.

`engine_checks` is what an engine must pass before it is trusted with a model; `opacus_engine` and `vmap_engine` serve
models that the fused engine does not cover.
"""
