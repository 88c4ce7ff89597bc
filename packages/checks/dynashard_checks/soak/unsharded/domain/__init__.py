"""The domain of a service whose table was written without shards: the shipped domain with another `users` module.

Put this folder before the shipped domain on the path. All other modules are taken from the shipped domain.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)

_spec = spec_from_file_location(__name__, Path(__path__[-1], "__init__.py"), submodule_search_locations=__path__)
if _spec is None or _spec.loader is None or len(__path__) != 2:  # noqa: PLR2004 - this one and the shipped one
    raise ImportError(f"put the shipped domain after this one on the path, and no third one; found {__path__}")
# An import of this package gets the shipped package, which looks for its modules here first.
sys.modules[__name__] = module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[__name__])
