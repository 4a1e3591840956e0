"""Acquisition scores, and mechanisms that turn scores into ids. Raw scores never leave this folder."""
