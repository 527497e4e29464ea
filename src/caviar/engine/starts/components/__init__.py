"""What tells the components of a start apart."""
