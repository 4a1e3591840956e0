"""From a budget to a certified plan. It knows nothing of data, models or stores.

Read request (what a user asks), setting (with defaults filled in), plan, spending (what it costs), certification; then
the planners: naive, step_amplification, continual, optimised. `planners` gives them names.
"""
