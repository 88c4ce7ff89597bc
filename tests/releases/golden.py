"""Keep what a release issues and stores: `python -m tests.releases.golden RELEASE [COMMIT]` writes its JSON files.

The release's own code makes them, in a process of its own: that of its archive. Of a commit, only cursors are kept.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from dynashard import schema
from dynashard_checks.schedules.wire import port_of_engine_in_memory
from dynashard_local.engine.tables import engine_client
from tests.releases.archive import FOLDER, archived, interpreter, unpacked

TABLE: Final = "golden"


def kept(release: str, kind: str) -> Any:
    """Return what a release issued or stored: its `cursors`, or `stored` records and what it read of them."""
    return json.loads((FOLDER / f"{release}.{kind}.json").read_text())


def create_table(endpoint: str) -> None:
    """Create an empty table with all index slots."""
    keys = [(schema.PK, schema.SK), *((schema.index_pk(slot), schema.index_sk(slot)) for slot in schema.INDEX_SLOTS)]
    schemas = [[{"AttributeName": pk, "KeyType": "HASH"}, {"AttributeName": sk, "KeyType": "RANGE"}] for pk, sk in keys]
    engine_client(endpoint).create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for pair in keys for name in pair],
        KeySchema=schemas[0],
        GlobalSecondaryIndexes=[
            {"IndexName": slot, "KeySchema": each, "Projection": {"ProjectionType": "ALL"}}
            for slot, each in zip(schema.INDEX_SLOTS, schemas[1:], strict=True)
        ],
    )


def under(python: Path, script: str, *arguments: str, given: str = "") -> Any:
    """Return what a script of this folder prints under the code of a release."""
    command = [str(python), str(FOLDER / script), *arguments]
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - our own
    return json.loads(done.stdout)


def main(release: str, commit: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as place, port_of_engine_in_memory() as port:
        checkout = Path(place)
        if commit is None:
            python = unpacked(release, checkout)
            stored = {name: value for name, value in under(python, "stored.py").items() if name != "code"}
            (FOLDER / f"{release}.stored.json").write_text(json.dumps(stored, indent=1) + "\n")
        else:
            archived(commit, checkout)
            python = interpreter(checkout)
        endpoint = f"http://127.0.0.1:{port}"
        create_table(endpoint)
        lines = ",\n".join(json.dumps(each) for each in under(python, "listings.py", endpoint, TABLE))
        (FOLDER / f"{release}.cursors.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
