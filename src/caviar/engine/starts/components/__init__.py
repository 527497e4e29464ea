"""What distinguishes the components of a start."""
