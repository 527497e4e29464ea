"""Tables as estimators take them: in memory or in blocks, with names, labels and scales."""
