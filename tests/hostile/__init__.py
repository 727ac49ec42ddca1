"""Bots that attack, one a file. `engine.sandbox` must hold each; the expected verdicts stand in the tests."""
