// Loaded into every Node process of a test: whoever opens a connection or starts a program fails.
const refuse = (what) => () => {
  throw new Error(`not hermetic: ${what}`);
};
for (const [name, calls] of [["net", ["connect", "createConnection"]], ["dns", ["lookup", "resolve"]]]) {
  for (const call of calls) {
    require(name)[call] = refuse(`${name}.${call}`);
  }
}
require("net").Socket.prototype.connect = refuse("net.Socket.connect");
const children = require("child_process");
const spawn = children.spawn;
children.spawn = (program, ...rest) =>
  program === process.execPath ? spawn(program, ...rest) : refuse(`spawn ${program}`)();
for (const call of ["exec", "execSync", "execFile", "execFileSync", "spawnSync"]) {
  children[call] = refuse(call);
}
