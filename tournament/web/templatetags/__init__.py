"""Template tags that all pages share."""
