"""The page at `/` of the local stack: where to go from here."""

from html import escape
from typing import Final

PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Dynashard, local stack</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 46rem; padding: 0 1rem }
pre { background: #8881; overflow-x: auto; padding: 1rem }
</style>
<h1>Dynashard</h1>
<p>The local stack runs. Its data stays in <code>DATA_DIR</code>.</p>
<ul>
<li><a href="/v1/docs">Try the API in the browser</a>. The page signs you in as any tenant.</li>
<li><a href="/v1/openapi.json">OpenAPI document</a></li>
<li><a href="/v1/health">Health</a></li>
</ul>
<p>Or from a terminal:</p>
<pre>{commands}</pre>
</html>
"""


def landing_page(commands: str) -> str:
    """Return the page, with commands to try."""
    return PAGE.replace("{commands}", escape(commands, quote=False))
