"""The Swagger page: a small page, and Powertools' bundled Swagger UI as cacheable, compressed files."""

import gzip
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from dynashard_serving.api.request import headers_of
from dynashard_serving.api.response import Response, takes_gzip

ASSETS: Final = {
    "swagger-ui.js": ("swagger-ui-bundle.min.js", "text/javascript"),
    "swagger-ui.css": ("swagger-ui.min.css", "text/css"),
}
_SIGN_IN: Final = r"""
<form id="local-token" style="margin: 1em auto; max-width: 1420px; padding: 0 20px; font-family: sans-serif">
<label>Tenant <input name="tenant" value="abc" required pattern="[A-Za-z0-9_\-]+"></label>
<button type="submit">Get a local token</button>
<output></output>
</form>
<script>
document.getElementById("local-token").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const body = JSON.stringify({tenant_id: form.elements.tenant.value});
  const answer = await fetch("/local/tokens", {method: "POST", body});
  const {token, message} = await answer.json();
  if (token) { ui.preauthorizeApiKey("bearer", token); }
  form.querySelector("output").textContent = token ? "Authorized." : message;
});
</script>
"""
"""A button that authorizes the page with a token of the local issuer, which only `make run` has."""
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Dynashard API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>{local_token}
<div id="swagger-ui"></div>
<script src="docs/swagger-ui.js"></script>
<script>
const ui = SwaggerUIBundle({url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true, persistAuthorization: true});
</script>
</body>
</html>
"""
_SWAGGER_UI: Final = ("event_handler", "openapi", "swagger_ui")
_DAY: Final = "public, max-age=86400"


def page(*, local: bool) -> Response[str]:
    """Return the HTML page. It loads `openapi.json` and the assets by relative paths.

    Args:
        local: whether the page has a button that gets a token of the local issuer.
    """
    body = _PAGE.replace("{local_token}", _SIGN_IN if local else "")
    return Response(HTTPStatus.OK, content_type="text/html; charset=utf-8", body=body)


def asset(name: str, event: Mapping[str, Any]) -> Response[bytes]:
    """One of `ASSETS`, gzipped if the client takes that; clients may keep it for a day."""
    file, content_type = ASSETS[name]
    headers = {"Cache-Control": _DAY, "Vary": "Accept-Encoding"}
    compressed = takes_gzip(headers_of(event).get("accept-encoding", ""))
    if compressed:
        headers["Content-Encoding"] = "gzip"
    return Response(
        HTTPStatus.OK,
        content_type=f"{content_type}; charset=utf-8",
        body=_content(file, compressed=compressed),
        headers=headers,
    )


@lru_cache(maxsize=len(ASSETS) * 2)
def _content(file: str, *, compressed: bool) -> bytes:
    raw = (_folder() / file).read_bytes()
    return gzip.compress(raw, mtime=0) if compressed else raw


def _folder() -> Path:
    """Return the folder of the Swagger UI within Powertools, which is not imported: a bundle has these files alone."""
    package = find_spec("aws_lambda_powertools")
    places = () if package is None else package.submodule_search_locations or ()
    for place in places:
        if (folder := Path(place, *_SWAGGER_UI)).is_dir():
            return folder
    raise FileNotFoundError("There is no Swagger UI: install the Powertools of requirements/functions.txt.")
