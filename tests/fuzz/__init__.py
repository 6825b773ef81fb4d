"""Nasty small problems for every machine, and what must be true of every fit."""
