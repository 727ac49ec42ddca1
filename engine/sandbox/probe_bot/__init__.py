"""A bot's folder holding the bot that tries the walls."""
