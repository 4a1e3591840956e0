"""Attacks on ourselves: dpal's own code and a plan's own numbers, on made-up records, against what is certified.

Read in this order: `claims` (what is claimed), `bounds` (what right and wrong guesses prove), `attack` (what every
attack is and finds), `canary_campaign` (a plan carried out on canaries), then the attacks: `many_canaries`,
`lone_canary`, `selection_alone`, `input_canaries` and `membership_inference` (with `stand_in`), `rounding` (with
`worst_cases`), `changed_data`. `audits` runs them all, `targets` says on what.
"""
