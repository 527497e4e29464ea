"""Posteriors and their factors as plain values, and factors put together again from them."""
