"""Program: a folder with `model.py` (the model-zoo contract), `job.json` and `reader.py`.

`model.py` defines features, model, loss and metrics; `job.json` defines data, training and cluster. `load` imports
the first under a unique module name and checks the contract, so that mistakes are reported before anything runs.

The compiler stores the digest of its `model.py` in `model.py.sha256`, in the format of `sha256sum` (`sha256sum -c
model.py.sha256` checks it by hand). A program is *edited* if its model.py differs or it has no such file.
"""

from edl.errors import UserCodeError
from edl.program.contract import FUNCTIONS, INPUTS, Mode
from edl.program.digest import DIGEST_FILE, digest, digest_line, is_edited
from edl.program.loader import (
    MODEL_FILE,
    READER_FILE,
    SPEC_FILE,
    Program,
    load,
    load_reader,
    read_spec,
    unload,
)
from edl.program.user_code import user_code

__all__ = [
    "DIGEST_FILE", "FUNCTIONS", "INPUTS", "MODEL_FILE", "READER_FILE", "SPEC_FILE", "Mode", "Program", "UserCodeError",
    "digest", "digest_line", "is_edited", "load", "load_reader", "read_spec", "unload", "user_code",
]  # fmt: skip
