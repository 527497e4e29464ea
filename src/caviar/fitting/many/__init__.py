"""Many fits of one statement in one call: tables by group, batches of groups, and their results."""
