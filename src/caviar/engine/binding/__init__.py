"""A statement meets its data: what is known of each node."""
