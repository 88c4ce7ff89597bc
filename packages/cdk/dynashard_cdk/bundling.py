"""Where the deployed code comes from: the bundle that `make build` wrote, or the sources for a template alone.

A backend has its functions and its domain. The packages below them are taken from where they are installed, which in
a checkout of Dynashard is the checkout.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dynashard_cdk.settings import SettingsError

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_

SOURCES = "sources"
"""Value of `-c assets=` that takes the code as it lies there, without what it depends on."""

INSTALLED = {"sharding": "dynashard", "patterns": "dynashard_patterns", "serving": "dynashard_serving"}
"""The layers that are packages of Dynashard, lowest first."""
DOMAIN = "domain"
LAYERS = (*INSTALLED, DOMAIN)
"""The layers of a bundle, lowest first."""

_NO_CODE = ["**/__pycache__", "**/*.pyc", "**/*.egg-info", "pyproject.toml", "**/README.md"]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Code assets of one synthesis.

    Attributes:
        root: the folder of the backend.
        folder: what `make build` wrote; None for the sources.
    """

    root: Path
    folder: Path | None

    @property
    def deployable(self) -> bool:
        """Whether the assets hold all they need to run."""
        return self.folder is not None

    @property
    def folders(self) -> list[Path]:
        """The folders of all that it holds; none for the sources."""
        return [] if self.folder is None else [self.folder / name for name in (*LAYERS, "functions")]

    def layer(self, name: str) -> "lambda_.Code":
        """Code of a layer, such as `sharding`."""
        return self._code(name, layer_source(self.root, name))

    def function(self, name: str) -> "lambda_.Code":
        """Code of a function; its module is `functions.<name>.handler`, here and in Lambda."""
        return self._code(f"functions/{name}", self.root / "functions")

    def _code(self, name: str, source: Path) -> "lambda_.Code":
        # A build reads this module too, and needs no CDK, which takes a second to load.
        from aws_cdk import aws_lambda as lambda_  # noqa: PLC0415

        if self.folder is None:
            return lambda_.Code.from_asset(str(source), exclude=_NO_CODE)
        path = self.folder / name
        if not path.is_dir():
            raise SettingsError(f"{path} is missing: run `make build` first, or synthesise with -c assets={SOURCES}")
        return lambda_.Code.from_asset(str(path))


def bundle_from(assets: str, root: Path) -> Bundle:
    """The bundle that `-c assets=...` names: a folder of the backend, or `sources`."""
    return Bundle(root, None if assets == SOURCES else root / assets)


def layer_source(root: Path, layer: str) -> Path:
    """Return the folder of a layer's package.

    Raises:
        SettingsError: it is not installed.
    """
    if layer == DOMAIN:
        return root / "layers" / DOMAIN / "python" / DOMAIN
    # Found without being imported: constructs do not run what they deploy.
    spec = find_spec(INSTALLED[layer])
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError(f"{INSTALLED[layer]} is not installed: run `make setup`")
    return Path(spec.submodule_search_locations[0])
