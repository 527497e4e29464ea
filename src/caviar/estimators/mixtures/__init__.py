"""What the mixtures share: statement, fit, attributes and predictions."""
