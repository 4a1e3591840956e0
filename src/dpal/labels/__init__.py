"""Labels: one answer, the table that people fill in, the names records have outside, and oracles.

Knows pools of records and nothing of a campaign's store. All answers enter a campaign through `Campaign.add_answers`.
"""
