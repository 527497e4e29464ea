"""Products of three hidden locations or more: factors of a table with as many ways."""
