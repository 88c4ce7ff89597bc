"""What the sample domain declares, for tests that go through all of it."""

import json
import shutil
from pathlib import Path
from typing import Final

from dynashard_serving.declare import FamilyListing
from dynashard_serving.discovery import index_of, module_names
from dynashard_serving.domain import INDEX, PACKAGE, declared

DOMAIN: Final = Path(__file__).parents[1] / "layers/domain/python/domain"

ENTITIES: Final = declared().entities
FAMILY_LISTINGS: Final = tuple(each for each in declared().declarations.served if isinstance(each, FamilyListing))


def bundle_in(folder: Path) -> Path:
    """Copy the domain into a folder for the path of imports, as a bundle holds it: with an index."""
    shutil.copytree(DOMAIN, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / PACKAGE / INDEX).write_text(json.dumps(index_of(module_names(PACKAGE))))
    return folder
