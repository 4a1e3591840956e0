"""From a budget to a certified plan, in a blink. Knows no data, model or store."""
