"""What the command line says: messages in its words, progress, and results."""
