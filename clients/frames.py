"""Lazy frames of Polars, frames of Polars and pandas, and tables of PyArrow are rows as arrays are."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import empirisk as er
from clients._rows import T, X

MACHINES = [er.Ridge(), er.TreeRegressor(), er.KNNRegressor(), er.ForestRegressor(3, random_state=0)]
columns = {"a": X[:, 0], "b": X[:, 1]}
rows = np.column_stack([*columns.values()])
for machine in MACHINES:
    wanted = machine.fit(rows, T).predict(rows)
    for table in (pl.DataFrame(columns).lazy(), pl.DataFrame(columns), pa.table(columns), pd.DataFrame(columns)):
        np.testing.assert_allclose(machine.fit(table, T).predict(table), wanted, rtol=1e-12, atol=1e-12)
        assert machine.feature_names_in_.tolist() == ["a", "b"]
print(f"{len(MACHINES)} machines on four kinds of tables")
