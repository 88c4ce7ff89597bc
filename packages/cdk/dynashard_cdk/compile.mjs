// Compiles folders of Python to the bytecode of Lambda's Python, whatever Python this machine has: Pyodide is
// CPython, and 0.28 is CPython 3.13. Usage: node compile.mjs MAJOR.MINOR FOLDER RUNTIME_PATH [FOLDER RUNTIME_PATH ...]
import { createRequire } from "node:module";

// Of the working directory, which is the backend: this file may be installed anywhere.
const { loadPyodide } = createRequire(`${process.cwd()}/`)("pyodide");

const [version, ...pairs] = process.argv.slice(2);
const python = await loadPyodide();
python.globals.set("wanted", version);
python.runPython(`
import compileall, py_compile, sys

if "%d.%d" % sys.version_info[:2] != wanted:
    raise SystemExit(f"this Pyodide is Python {sys.version.split()[0]}, but Lambda runs {wanted}")

def compile_folder(folder, runtime_path):
    # Unchecked: the files of a Lambda cannot change, so its Python need not look at the source again.
    return compileall.compile_dir(
        folder, quiet=1, stripdir=folder, prependdir=runtime_path,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
`);
const compileFolder = python.globals.get("compile_folder");
for (let i = 0; i < pairs.length; i += 2) {
  const mounted = `/mnt/${i}`;
  python.FS.mkdirTree(mounted);
  python.mountNodeFS(mounted, pairs[i]);
  if (!compileFolder(mounted, pairs[i + 1])) {
    process.exit(1);
  }
}
