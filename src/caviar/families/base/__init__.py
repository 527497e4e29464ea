"""What families are made of: their base, values, marginals and roots that several have, and checks of parameters."""
