// The picture as this page has it: patches merged into it, logs that grow, and what is chosen.

export function merged(before, patch) {
  const after = { ...before };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete after[name];
    else if (typeof value === "object" && !Array.isArray(value)) {
      const known = after[name];
      const inside = known && typeof known === "object" && !Array.isArray(known) ? known : {};
      after[name] = merged(inside, value);
    } else after[name] = value;
  }
  return after;
}

const KEPT = 20_000; // items of a log; the oldest are let go

export class Store {
  constructor() {
    this.forget();
  }

  forget() {
    this.world = "";
    this.about = {};
    this.worlds = []; // that can be opened here
    this.picture = {};
    this.logs = { told: [], samples: [], metadata: [], trace: [], flights: [] };
    this.lags = []; // {at, lag: {broker: records}} of the chosen partition
    this.partition = "";
    this.selected = null; // {kind: "broker" | "link" | "message" | "record", ...}
  }

  hear(message) {
    switch (message.tell) {
      case "opened":
        this.forget();
        this.world = message.world;
        this.about = message.about;
        this.worlds = message.worlds;
        break;
      case "log": {
        const log = (this.logs[message.name] ??= []);
        log.gone ??= 0;
        log.length = Math.max(0, Math.min(log.length, message.at - log.gone)); // shorter when a world goes back in time
        for (const item of message.items) log.push(item);
        if (this.world === "live" && log.length > KEPT) log.gone += log.splice(0, KEPT / 2).length;
        break;
      }
      case "picture":
        this.picture = merged(this.picture, message.patch);
        this.notice();
        break;
    }
  }

  // What is plotted over time and is in no log.
  notice() {
    if (!this.has(this.partition)) {
      this.partition = Object.keys(this.picture.partitions ?? {})[0] ?? "";
      this.lags = [];
    }
    const partition = this.chosen();
    const now = this.picture.now_us ?? 0;
    while (this.lags.length && this.lags.at(-1).at >= now) this.lags.pop();
    if (!partition) return;
    const end = partition.logs[partition.leader]?.end ?? Math.max(0, ...Object.values(partition.logs).map((log) => log.end));
    const lag = {};
    for (const node of partition.replicas) {
      if (node !== partition.leader) lag[node] = Math.max(0, end - (partition.logs[node]?.end ?? 0)); // a live leader is asked a moment earlier
    }
    this.lags.push({ at: now, lag });
    if (this.lags.length > 3000) this.lags.splice(0, 1000);
  }

  // Of many partitions only the chosen one is there whole.
  has(partition) {
    const { outline, partitions = {} } = this.picture;
    return partition in (outline?.rows ?? {}) || partition in partitions;
  }

  choose(partition) {
    if (partition !== this.partition) {
      this.partition = partition;
      this.lags = [];
    }
  }

  chosen() {
    return this.picture.partitions?.[this.partition];
  }
}
