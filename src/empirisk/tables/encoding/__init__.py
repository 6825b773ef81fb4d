"""Tables as arrays of numbers that machines learn from."""
