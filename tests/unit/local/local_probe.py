"""A worker for tests: it writes a file at its start, and runs until its standard input ends, or fails at once."""

import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    folder = Path(os.environ["FOLDER"])
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    draft = folder / f"draft-{os.getpid()}"
    draft.write_text(json.dumps({"process": os.getpid(), "environment": dict(os.environ)}))
    draft.rename(folder / f"begun-{os.getpid()}")
    if os.environ.get("FAIL"):
        sys.exit(3)
    sys.stdin.buffer.read()
    (folder / f"ended-{os.getpid()}").touch()
