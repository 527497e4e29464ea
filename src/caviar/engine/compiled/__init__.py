"""Terms as contractions, and the sums over rows, updates and local factors that follow from them."""
