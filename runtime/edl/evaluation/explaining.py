"""Choice of what explains the rows of a job: TreeSHAP, walks over the columns, or expected gradients."""

from __future__ import annotations

import threading

import pyarrow as pa

from edl.evaluation.expected_gradients import GradientExplainer
from edl.evaluation.scoring import Scorer
from edl.evaluation.shapley import Explainer, TreeExplainer, draw
from edl.frameworks import Adapter
from edl.input.blocks import Blocks
from edl.program import Program
from edl.spec import TREES, Explanation


def explaining_scorer(
    program: Program,
    adapter: Adapter,
    blocks: Blocks,
    background: pa.RecordBatch | None,
    cancelled: threading.Event,
) -> Scorer:
    """Return what explains the rows of the blocks. background: rows to compare them with, in place of the
    query's rows.
    """
    spec = program.spec
    if spec.framework in TREES:
        return TreeExplainer(program, adapter, spec.batch_size)
    by_gradients = bool((spec.explanation or Explanation()).method)
    explainer = GradientExplainer if by_gradients else Explainer
    return explainer(program, adapter, spec.batch_size, blocks, draw(spec, blocks, background), cancelled)
