"""The options of the commands, in the order of the help text."""
