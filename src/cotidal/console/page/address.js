// The address says which run: its start, its commands, its moment. A link shares the run.

const NUMBERS = ["seed", "nodes", "partitions", "replication", "min_isr", "lag_ms", "delay_ms", "rate", "at_us"];
const FLAGS = ["elr", "unclean"];
const LONGEST = 6000; // characters of commands in an address; more are not shared

export function read(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  // An address that says nothing opens what the server shows first.
  const command = { do: "open", world: given.get("world") ?? ([...given].length ? "simulator" : undefined) };
  for (const name of NUMBERS) {
    if (/^\d+$/.test(given.get(name) ?? "")) command[name] = Number(given.get(name));
  }
  for (const name of FLAGS) if (given.has(name)) command[name] = given.get(name) === "true";
  for (const name of ["story", "plan", "script"]) if (given.has(name)) command[name] = given.get(name);
  if (given.has("did")) {
    try {
      const bytes = Uint8Array.from(atob(given.get("did").replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
      command.journal = JSON.parse(new TextDecoder().decode(bytes));
    } catch { /* a damaged address shows the run without its commands */ }
  }
  return command;
}

export function write(command) {
  const told = new URLSearchParams();
  if (command.world !== "simulator") told.set("world", command.world);
  for (const name of [...NUMBERS, ...FLAGS, "story", "plan", "script"]) {
    if (command[name] !== undefined) told.set(name, String(command[name]));
  }
  if (command.journal?.length) {
    const bytes = new TextEncoder().encode(JSON.stringify(command.journal));
    const text = btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
    if (text.length <= LONGEST) told.set("did", text);
  }
  return `#${told}`;
}
