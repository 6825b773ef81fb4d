"""How the classes of each family are written as graphs."""
