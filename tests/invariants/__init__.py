"""What no fit may break."""
