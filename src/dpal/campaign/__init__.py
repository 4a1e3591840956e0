"""The durable loop: plan, charge, commit, run, record, and again. The only place that charges. No torch."""
