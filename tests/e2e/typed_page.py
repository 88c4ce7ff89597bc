"""Pages that a reader types: files that they name are written, commands are run in one shell, and output is compared.

A block of `bash` is typed. A block of `text` below it is what it prints, in this order; `...` stands for any text. A
block with a title is a file. `make run` starts the local stack, which serves until the page starts another.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from tests.e2e.local_process import LocalProcess
from tests.markdown import Snippet, snippets
from tests.ports import reserved_ports

END = "-- typed, with status "
URL = "http://127.0.0.1:8000"
ENGINE = "http://127.0.0.1:8001"
OWN_PORT = "8100"
"""The port of a program of the reader's own."""
RUN = re.compile(r"^(?P<settings>(?:[A-Z_]+=\S+ )*)make run(?P<more>(?: [A-Z_]+=\S+)*)$")


@dataclass
class Reader(AbstractContextManager["Reader"]):
    """Somebody who types pages into a shell, in a folder.

    Attributes:
        folder: where commands are typed and files are written.
        python: the interpreter of the local stack.
        checkout: whose code the local stack runs, if not that of the folder.
        instead: lines that need a network or another folder, with what is typed instead.
    """

    folder: Path
    python: str
    checkout: Path | None = None
    instead: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stack: LocalProcess | None = None
        self._reserved = ExitStack()
        [port] = self._reserved.enter_context(reserved_ports(1))
        self.own_port = str(port)
        self.printed = ""
        self.replaced: set[str] = set()
        ours = ("MAKE", "MFLAGS", "PYTEST", "PYTHONPATH", "COV", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self._shell = subprocess.Popen(
            ["/bin/bash", "--noprofile", "--norc", "-eu"],
            cwd=self.folder,
            env={**kept, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._shell.terminate()
        self._shell.communicate()
        self._reserved.close()
        self._stop()

    def read(self, page: Path) -> None:
        """Do what a page says, from its beginning to its end."""
        for snippet in snippets(page, page.read_text("utf-8")):
            if snippet.title:
                self._write(snippet)
            elif snippet.language == "bash":
                self.printed = "".join(self._type(line) for line in self._lines(snippet))
            elif snippet.language == "text":
                self._compare(snippet)

    def _lines(self, snippet: Snippet) -> Iterator[str]:
        """Yield what is typed of a block: its commands, those over several lines as one."""
        for line in snippet.text.replace("\\\n", "").splitlines():
            command = line.split(" #")[0].strip()
            if command in self.instead:
                self.replaced.add(command)
                yield self.instead[command]
            elif command:
                yield line

    def _type(self, line: str) -> str:
        if found := RUN.match(line):
            self._start(dict(each.split("=") for each in f"{found['settings']}{found['more']}".split()))
            return ""
        return self._run(self._here(line))

    def _run(self, line: str) -> str:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        # Nothing that is typed may read what is typed next.
        self._shell.stdin.write(f"{{ {line}\n}} < /dev/null; printf '\\n{END}%s\\n' $?\n")
        self._shell.stdin.flush()
        output = ""
        for said in self._shell.stdout:
            if said.startswith(END):
                return output
            output += said
        raise AssertionError(f"{line}\n{output}")

    def _here(self, text: str) -> str:
        text = text.replace(OWN_PORT, self.own_port)
        return text if self.stack is None else text.replace(URL, self.stack.url).replace(ENGINE, self.stack.engine_url)

    def _write(self, snippet: Snippet) -> None:
        path = self.folder / snippet.title
        path.parent.mkdir(parents=True, exist_ok=True)
        reloads = 0 if self.stack is None else self.stack.text.count("Reloaded in")
        path.write_text(self._here(snippet.text))
        if self.stack is not None and "layers" in path.parts:
            self.stack.once(lambda: self.stack is not None and self.stack.text.count("Reloaded in") > reloads)

    def _compare(self, snippet: Snippet) -> None:
        rest = [line.strip() for line in self.printed.splitlines()]
        for line in snippet.text.splitlines():
            wanted = re.compile(".*".join(map(re.escape, line.strip().split("..."))))
            at = next((at for at, said in enumerate(rest) if wanted.fullmatch(said)), None)
            assert at is not None, f"{snippet.place}: {line!r} is not in\n{self.printed}"
            rest = rest[at + 1 :]

    def _start(self, settings: Mapping[str, str]) -> None:
        self._stop()
        data = self.folder / settings.get("DATA_DIR", ".data")
        # The files of a checkout may be edited while tests run.
        environment = {"LOCAL_RELOAD": "on" if self.checkout is None else "off", **settings, "DATA_DIR": str(data)}
        checkout = self.checkout or self.folder
        self.stack = LocalProcess(data, environment, checkout=checkout, python=self.python).ready()
        ports = {"PORT": self.stack.url, "DYNAMODB_PORT": self.stack.engine_url}
        self._run("\n".join(f"export {name}={url.rsplit(':', 1)[1]}" for name, url in ports.items()))
        self._run(f"export DATA_DIR={data}")

    def _stop(self) -> None:
        if self.stack is not None:
            assert self.stack.interrupt() == 0
            assert self.stack.all_gone()
            self.stack = None
