"""Theorem 1 of the paper: its bounds, and what they are worth on real documents."""
