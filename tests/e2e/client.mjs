// A kernel in JavaScript, written from PROTOCOL.md alone: client.mjs SOCKET ROOT DIRENV.
// Its environment is its base. It prints the frames that it got, then its environment.
import { createHash } from "node:crypto";
import { lstatSync, statSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname } from "node:path";

const [socket, root, direnv] = process.argv.slice(2);
const folder = lstatSync(dirname(socket));
const uid = process.getuid();
if (folder.uid !== uid || folder.mode & 0o022 || lstatSync(socket).uid !== uid) {
  process.exit(3);
}
const unshared = new Set(["PWD", "OLDPWD", "SHLVL", "_"]);
const four = ["DIRENV_DIR", "DIRENV_FILE", "DIRENV_WATCHES", "DIRENV_DIFF"];
four.forEach((name) => unshared.add(name));
const names = Object.keys(process.env)
  .filter((name) => !unshared.has(name) && !name.startsWith("JPY_"))
  .sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
const environment = Object.fromEntries(names.map((name) => [name, process.env[name]]));
const hash = createHash("sha256");
names.forEach((name) => hash.update(`${name}=${environment[name]}\0`));
const fingerprint = hash.digest("hex");

const pipe = createConnection(socket);
const say = (frame) => pipe.write(JSON.stringify(frame) + "\n");
const ask = { type: "export", id: 1, root, fingerprint, direnv };
const here = statSync(process.cwd(), { bigint: true });
say({
  type: "hello",
  protocol: 1,
  pid: process.pid,
  client: "node/1",
  capabilities: [],
  cwd: { path: process.cwd(), dev: String(here.dev), ino: String(here.ino) },
});

const heard = {
  welcome: () => say(ask),
  need_base: () => say({ ...ask, environment }),
  progress: () => {},
  diff: (frame) => {
    Object.assign(process.env, frame.set);
    frame.unset.forEach((name) => delete process.env[name]);
    say({ type: "left", root });
    say({ type: "status", id: 2 });
  },
  done: () => {
    console.log(JSON.stringify({ environ: process.env }));
    pipe.end();
  },
};
let rest = "";
pipe.setEncoding("utf8");
pipe.setTimeout(20000, () => process.exit(4));
pipe.on("data", (data) => {
  const lines = (rest + data).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    console.log(line);
    const frame = JSON.parse(line);
    (heard[frame.type] ?? (() => process.exit(5)))(frame);
  }
});
