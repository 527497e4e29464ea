"""Terms as contractions, and what follows from them: sums over rows, updates, local factors."""
