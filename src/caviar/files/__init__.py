"""Files written whole or not at all, what killed processes leave, and names from files in messages."""
