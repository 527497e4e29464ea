"""Many fits of one statement at once: its groups along the outermost axis of every array."""
