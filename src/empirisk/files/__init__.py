"""The model file: a zip of one JSON tree and plain arrays. Loading one reads data and runs no code from it."""
