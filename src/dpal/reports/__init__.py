"""Tables and plots of what was planned and done."""
