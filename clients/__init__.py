"""Programs of other people with Empirisk's machines: each script asserts what must work; ``make clients`` runs them."""
