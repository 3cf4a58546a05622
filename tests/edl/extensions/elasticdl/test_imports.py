"""Imports of modules of ElasticDL: what they become, and which errors they are."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

from edl.errors import SemanticError
from edl.extensions.elasticdl.imports import redirect_imports

NAMES = """
from elasticdl.layers import Embedding
from elasticdl.python.common.constants import DistributionStrategy, JobType, MaxComputeConfig, Mode
from elasticdl.python.common.log_utils import default_logger
from elasticdl.python.common.model_utils import get_module_file_path, get_module_from_file, load_module
from elasticdl.python.data.odps_io import ODPSWriter, is_odps_configured
from elasticdl.python.data.reader.csv_reader import CSVDataReader
from elasticdl.python.data.reader.data_reader import AbstractDataReader, Metadata
from elasticdl.python.data.reader.recordio_reader import RecordIODataReader
from elasticdl.python.elasticdl.callbacks import LearningRateScheduler, SavedModelExporter
from elasticdl.python.elasticdl.feature_column import feature_column
from elasticdl.python.elasticdl.feature_column.feature_column import embedding_column
from elasticdl.python.elasticdl.layers.embedding import Embedding
from elasticdl.python.worker.prediction_outputs_processor import BasePredictionOutputsProcessor
from elasticdl_preprocessing.feature_column import feature_column
from elasticdl_preprocessing.layers import ConcatenateWithOffset, Discretization, Hashing, IndexLookup, LogRound
from elasticdl_preprocessing.layers import Normalizer, RoundIdentity, SparseEmbedding, ToNumber, ToRagged, ToSparse
from elasticdl_preprocessing.layers.hashing import Hashing
from elasticdl_preprocessing.utils.analyzer_utils import get_avg, get_bucket_boundaries, get_vocabulary
from elasticdl_preprocessing.utils.decorators import declare_model_inputs
from tensorflow.python.keras import backend, layers, regularizers
from tensorflow.python.keras.metrics import accuracy
from tensorflow.keras.layers import DenseFeatures
"""


def redirect(source: str, zoo: Path = Path()) -> str:
    return ast.unparse(redirect_imports(ast.parse(source), "net.py", zoo))


def test_every_name_of_elasticdl_has_a_stand_in() -> None:
    for line in ast.parse(redirect(NAMES)).body:
        assert isinstance(line, ast.ImportFrom)
        assert line.module is not None
        module = importlib.import_module(line.module)
        assert line.module.startswith("edl.extensions.elasticdl.names.")
        for alias in line.names:
            assert hasattr(module, alias.name), f"{line.module}.{alias.name}"


def test_what_is_imported_whole_needs_a_name_of_its_own() -> None:
    assert "import edl.extensions.elasticdl.names.constants as constants" in redirect(
        "import os, elasticdl.python.common.constants as constants"
    )
    with pytest.raises(
        SemanticError, match=r"^net.py:2: import elasticdl.python.common.constants without a name"
    ):
        redirect("import os\nimport elasticdl.python.common.constants")


def test_a_module_without_a_stand_in_is_named_with_its_line_and_the_nearest_one() -> None:
    with pytest.raises(
        SemanticError, match=r"^net.py:3: there is no elasticdl.python.common.constant here"
    ) as raised:
        redirect("import os\n\nfrom elasticdl.python.common.constant import Mode")
    assert raised.value.hint == "did you mean elasticdl.python.common.constants?"


def test_names_of_the_zoo_s_own_package_are_found_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "losses.py").write_text("")
    source = (
        "from model_zoo.nets.deep import Net\nfrom model_zoo import nets\nfrom model_zoo.losses import mse"
    )
    assert redirect(source, tmp_path).splitlines() == [
        "from nets.deep import Net",
        "from model_zoo import nets",
        "from losses import mse",
    ]


def test_other_imports_and_other_modules_stay_as_they_are(tmp_path: Path) -> None:
    source = "import json.decoder\nfrom . import layers\nfrom json import loads\nfrom tensorflow import keras"
    assert redirect(source, tmp_path) == source
    assert not [name for name in sys.modules if name.partition(".")[0].startswith("elasticdl")]
