"""What predictions rest on: permutation importance, Shapley values, contributions of columns, partial dependence."""
