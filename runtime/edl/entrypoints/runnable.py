"""Main function of a process that runs a runnable: `python -m edl.entrypoints.runnable LIFELINE FILE ARGUMENT …`.

LIFELINE is the descriptor of a pipe that ends with the process that wants the results, see `parent_watch`. FILE is a
path, or in a container a file in a folder of the model path.
"""

from __future__ import annotations

import runpy
import signal
import sys
import traceback
from pathlib import Path

from edl.cluster.local import parent_watch
from edl.program.user_model import search_path


def main() -> int:
    """Run the file as a main program; it can import the modules beside it."""
    lifeline, file = sys.argv[1:3]
    parent_watch.follow(int(lifeline))
    # A job in the background of a shell inherits that Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = sys.argv[2:]
    if not Path(file).is_absolute():
        folders = search_path()
        file = next((str(Path(folder, file)) for folder in folders if Path(folder, file).is_file()), "")
        if not file:
            print(f"the image has no program {sys.argv[0]} in {', '.join(folders)}, see SQLFLOW_MODEL_PATH")
            return 1
    sys.path.insert(0, str(Path(file).parent))
    try:
        runpy.run_path(file, run_name="__main__")
    except Exception as error:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != file:
            frames = frames.tb_next
        traceback.print_exception(error.with_traceback(frames))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
