"""Hidden numbers 0 or 1 of the rows that multiply something: which of them are 1."""
