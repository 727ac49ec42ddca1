"""Scrimmages: an author asks whether one bot is better than another, and the site plays until it knows.

They are `arena compare` on the site's workers: the same matches from the same seed, the same test, the same answer.
This app must not touch a tournament or a rating: nothing here counts.
"""
