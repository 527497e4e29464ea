"""How a block of rows responds to changes of what it needs of the globals."""
