"""The contest: who plays next, how one fold is played, what is kept, and the time that all of it may take."""
