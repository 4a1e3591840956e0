"""Networks whose layers never mix records. No privacy code."""
