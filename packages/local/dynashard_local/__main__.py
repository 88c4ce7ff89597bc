"""`python -m dynashard_local`: the local stack."""

import sys

if __name__ == "__main__":  # execution environments import this module again
    from dynashard_local import stopping

    stopping.stop_at_once()
    from dynashard_local.root import backend_root, importable

    importable(backend_root())
    from dynashard_serving.start import uncollected

    with uncollected():
        from dynashard_local.run import main

    sys.exit(main())
