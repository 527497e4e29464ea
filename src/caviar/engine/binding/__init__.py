"""Statements bound to data: what is known of each node."""
