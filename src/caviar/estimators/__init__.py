"""scikit-learn estimators: thin shells that state a model, fit it, and read attributes off its posterior."""
