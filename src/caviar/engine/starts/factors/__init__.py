"""Global factors to begin with: at their priors, drawn, after a sweep, and the best of several."""
