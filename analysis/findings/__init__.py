"""Verdicts become findings; comments take findings back."""
