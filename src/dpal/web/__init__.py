"""The labelling page and the dashboard, served to people's browsers from this machine.

Read `server` first (what is served where), then `access` (who may do what), `protection` (what every request must
pass), `labelling` and `dashboard` (the two kinds of pages). Holds no logic of campaigns: parse, call, answer.
"""
