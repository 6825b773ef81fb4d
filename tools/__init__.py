"""What writes parts of the repository."""
