"""The Swagger page: a small page, and Powertools' bundled Swagger UI as cacheable, compressed files."""

import gzip
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from functions.api.incoming import headers_of

ASSETS: Final = {
    "swagger-ui.js": ("swagger-ui-bundle.min.js", "text/javascript"),
    "swagger-ui.css": ("swagger-ui.min.css", "text/css"),
}
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Dynashard API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui.js"></script>
<script>
SwaggerUIBundle({url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true, persistAuthorization: true});
</script>
</body>
</html>
"""
_DAY: Final = "public, max-age=86400"


def page() -> Response[str]:
    """The HTML page; it loads `openapi.json` and the assets from beside itself."""
    return Response(HTTPStatus.OK, content_type="text/html; charset=utf-8", body=_PAGE)


def asset(name: str, event: Mapping[str, Any]) -> Response[bytes]:
    """One of `ASSETS`, gzipped if the client takes that; clients may keep it for a day."""
    file, content_type = ASSETS[name]
    headers = {"Cache-Control": _DAY, "Vary": "Accept-Encoding"}
    compressed = "gzip" in headers_of(event).get("accept-encoding", "")
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
    from aws_lambda_powertools.event_handler.openapi import swagger_ui  # noqa: PLC0415 - imports pydantic models

    raw = (Path(swagger_ui.__file__).parent / file).read_bytes()
    return gzip.compress(raw, mtime=0) if compressed else raw
