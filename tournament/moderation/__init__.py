"""What operators do about people: suspend a bot or a player, hand over and erase what is kept of a person."""
