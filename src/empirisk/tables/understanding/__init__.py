"""What the columns of a table hold, which one is the target, and how they are spread."""
