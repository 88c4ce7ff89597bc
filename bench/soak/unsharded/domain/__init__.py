"""The shipped domain as a service has it whose table was written without shards: its `users` stand in for the shipped.

This goes before the shipped domain on the path; all that it does not have itself comes from there.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)

_spec = spec_from_file_location(__name__, Path(__path__[-1], "__init__.py"), submodule_search_locations=__path__)
if _spec is None or _spec.loader is None or len(__path__) != 2:  # noqa: PLR2004 - this one and the shipped one
    raise ImportError(f"put the shipped domain behind this one on the path, and nothing else; found {__path__}")
# Whoever imports this gets the shipped package itself, which finds its modules here first.
sys.modules[__name__] = module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[__name__])
