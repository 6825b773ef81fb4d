"""Newton's method, for smooth losses and penalties."""
