"""What the commands say of each kind of model, and of its rows."""
