"""The tests: unit mirrors the source; the other folders are named for what they need or prove."""
