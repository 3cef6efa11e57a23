// The simulator in the reader's own browser: Python in a worker, a session of the same message interface.
// Only in the static site (`make site`), which puts Pyodide and the product's source beside this file.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const TURN_MS = 40;
const TURN_MS_MAX = 250;

const START = `
import sys
sys.path.insert(0, "/cotidal")
from cotidal.console.session import Session
from cotidal.console.worlds import WORLDS
session = Session(WORLDS)
`;

postMessage({ tell: "loading", text: "Loading Python into your browser (about 13 MB, once) …" });
const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
postMessage({ tell: "loading", text: "Starting the simulator …" });
const source = await fetch(new URL("./cotidal.zip", import.meta.url));
python.unpackArchive(await source.arrayBuffer(), "zip", { extractDir: "/cotidal" });
python.runPython(START);
const session = python.globals.get("session");

function send() {
  const told = session.take();
  for (const text of told.toJs()) postMessage(JSON.parse(text));
  told.destroy();
}

onmessage = (event) => {
  session.hear(event.data);
  send();
};

let last = performance.now();
setInterval(() => {
  const now = performance.now();
  session.turn(Math.min(TURN_MS_MAX, Math.round(now - last)));
  last = now;
  send();
}, TURN_MS);

postMessage({ tell: "loaded" });
