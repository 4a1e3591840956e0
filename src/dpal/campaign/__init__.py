"""The durable loop: plan, charge, commit, run, record, and again. The only place that charges. Imports no torch itself.

Reading order: layout (file names), facts, store, state, reader, writer, then creation, runner, and campaign, which
composes them. Labels come in through labelling.
"""
