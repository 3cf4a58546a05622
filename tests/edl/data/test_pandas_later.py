"""PyArrow without pandas until a program imports it, in a process of its own, as the state lasts as long."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from edl.data import pandas_later

pandas_later.postpone()
import pyarrow as pa

assert pa.array([0.5, None]).to_pylist() == [0.5, None]
assert "pandas" not in sys.modules, "an array needs none"
import numpy as np
import pandas as pd

assert pa.array(pd.Series([0.5, np.nan])).null_count == 1, "PyArrow does not know pandas"
assert pa.table({"a": [1]}).to_pandas()["a"].tolist() == [1]
"""
FIRST = """
from edl.data import pandas_later

pandas_later.postpone()
import pyarrow as pa

frame = pa.table({"a": [1]}).to_pandas()
assert pa.Table.from_pandas(frame)["a"].to_pylist() == [1]
"""


EARLIER = """
from edl.data import pandas_later

pandas_later.postpone()
import pandas as pd
import pyarrow as pa

assert pa.array(pd.Series([0.5, None])).null_count == 1
"""
HIDDEN = """
import sys
from edl.data import pandas_later
from edl.frameworks.imports import without_extras

pandas_later.postpone()
with without_extras():
    import pyarrow as pa
assert pa.array([0.5]).to_pylist() == [0.5]
assert "pandas" not in sys.modules
import pandas as pd

assert pa.array(pd.Series([0.5, None])).null_count == 1
"""


def test_arrays_need_no_pandas_and_know_it_once_it_is_imported() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


@pytest.mark.soak
@pytest.mark.parametrize(
    "program",
    [FIRST, *(pytest.param(each, marks=pytest.mark.soak) for each in (EARLIER, HIDDEN))],
    ids=["in a conversion", "before PyArrow", "while it is hidden"],
)
def test_pyarrow_knows_pandas_whoever_imports_it(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)
