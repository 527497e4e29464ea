"""The engine: terms compiled to contractions, one loop, and what a fit gives back."""
