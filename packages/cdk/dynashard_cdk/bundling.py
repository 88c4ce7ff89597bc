"""Where the deployed code comes from: the bundle that `make build` wrote, or the sources for a template alone."""

from dataclasses import dataclass
from pathlib import Path

from aws_cdk import aws_lambda as lambda_

from dynashard_cdk.settings import SettingsError

ROOT = Path(__file__).resolve().parents[3]

SOURCES = "sources"
"""Value of `-c assets=` that takes the code as it lies in the checkout, without its packages."""

LAYERS = ("sharding", "patterns", "serving", "domain")
"""The layers of a bundle, lowest first."""

_NO_CODE = ["**/__pycache__", "**/*.pyc", "**/*.egg-info", "pyproject.toml", "**/README.md"]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Code assets of one synthesis: the folder that `make build` wrote, or None for the sources."""

    folder: Path | None

    @property
    def deployable(self) -> bool:
        """Whether the assets hold all they need to run."""
        return self.folder is not None

    @property
    def folders(self) -> list[Path]:
        """The folders of all that it holds; none for the sources."""
        return [] if self.folder is None else [self.folder / name for name in (*LAYERS, "functions")]

    def layer(self, name: str) -> lambda_.Code:
        """Code of a layer, such as `sharding`."""
        return self._code(name, ROOT / "layers" / name)

    def function(self, name: str) -> lambda_.Code:
        """Code of a function; its module is `functions.<name>.handler`, here and in Lambda."""
        return self._code(f"functions/{name}", ROOT / "functions")

    def _code(self, name: str, source: Path) -> lambda_.Code:
        if self.folder is None:
            return lambda_.Code.from_asset(str(source), exclude=_NO_CODE)
        path = self.folder / name
        if not path.is_dir():
            raise SettingsError(f"{path} is missing: run `make build` first, or synthesise with -c assets={SOURCES}")
        return lambda_.Code.from_asset(str(path))


def bundle_from(assets: str) -> Bundle:
    """The bundle that `-c assets=...` names: a folder in the checkout, or `sources`."""
    return Bundle(None if assets == SOURCES else ROOT / assets)
