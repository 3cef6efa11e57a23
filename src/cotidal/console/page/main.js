// The page: hears the world, draws its picture, tells it what a person wants.

import * as address from "./address.js";
import { clockTime, el, say, set, show, seconds } from "./dom.js";
import { Desk } from "./desk/desk.js";
import { SocketLink, WorkerLink } from "./link.js";
import { LabView, runs } from "./lab.js";
import { Lesson, lessons } from "./lesson.js";
import { Logs } from "./logs.js";
import { ClusterMap, legend } from "./map.js";
import { Changes, Detail, Feed, MetadataLog, Promises } from "./panels.js";
import { PartitionTable } from "./partitions.js";
import { LagPlot, LatencyPlot, ThroughputPlot } from "./plots.js";
import { QuorumPanel } from "./quorum.js";
import { Store } from "./store.js";
import { Timeline } from "./timeline.js";

const SPEEDS = [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 50];
const TIME = new Set(["run", "pause", "step", "back", "seek", "speed"]);

const byId = (id) => document.getElementById(id);

class Page {
  constructor() {
    document.body.classList.toggle("embedded", new URLSearchParams(location.search).has("embed"));
    this.store = new Store();
    this.opening = address.read(location.hash);
    this.map = new ClusterMap(byId("map"), this);
    this.logs = new Logs(byId("logs"), this);
    legend(byId("legend"));
    this.views = [this.map, this.logs, new Timeline(byId("timeline"), this), new Feed(this), new Detail(this),
      new Promises(byId("promises")), new LatencyPlot(byId("latency")), new LagPlot(byId("lag")), new ThroughputPlot(byId("throughput")),
      new PartitionTable(byId("partitions"), this), new MetadataLog(byId("metadata")), new QuorumPanel(byId("quorum")), new Changes(byId("change"), this), new Lesson(byId("lesson"), this), new LabView(byId("lab"), this)];
    this.desk = new Desk(byId("desk"), byId("tabs"), this);
    this.views.push(this.desk);
    this.makeControls();
    this.makeKeys();
    this.makeWorlds();
    this.makeTheme();
    const on = {
      open: () => this.onOpen(), gone: () => this.onGone(), message: (message) => this.hear(message),
      loading: (text) => { say(byId("connection"), text); this.warn(text); },
    };
    const worker = document.querySelector("meta[name=cotidal-worker]")?.content;
    this.link = worker ? new WorkerLink(on, worker) : new SocketLink(on);
    addEventListener("hashchange", () => {
      if (location.hash === this.written) return;
      this.opening = address.read(location.hash);
      this.link.say(this.opening);
    });
  }

  // Hearing

  onOpen() {
    const again = this.wasGone;
    this.wasGone = false;
    say(byId("connection"), "connected");
    set(byId("connection"), { class: "good" });
    const told = this.store.world === "live" ? "this is the cluster as it is now" : "the run was done again, to the same moment";
    this.warn(again ? `Connected again: ${told}.` : "");
    if (again) setTimeout(() => this.warn(""), 6000);
    this.link.say(this.reopening());
  }

  onGone() {
    this.wasGone = true;
    say(byId("connection"), "disconnected");
    set(byId("connection"), { class: "bad" });
    this.warn("The server is gone. This page tries again until it is back.");
  }

  // The same run, to the same moment.
  reopening() {
    const picture = this.store.picture;
    if (this.store.world === "live") return { do: "open", world: "live" };
    if (picture.now_us === undefined || !this.store.about.start) return this.opening;
    return { do: "open", world: this.store.world, ...this.store.about.start, journal: picture.journal ?? [], at_us: picture.now_us };
  }

  hear(message) {
    if (message.tell === "refused") { this.note(message.sentence); return; }
    this.store.hear(message);
    if (message.tell === "opened") {
      say(byId("title"), message.about.title);
      document.title = `${message.about.title} · cotidal`;
      this.views.forEach((view) => { view.key = view.drawn = undefined; });
    }
    if (message.tell === "picture") {
      this.redraw();
      this.link.say({ do: "ready" });
    }
  }

  redraw() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.drawAll();
    });
  }

  drawAll() {
    for (const view of this.views) view.draw(this.store);
    this.drawControls();
    this.drawRooms();
    this.drawChoice();
    this.writeAddress();
  }

  // What stands until it is over.
  warn(text) {
    say(byId("banner"), text);
    show(byId("banner"), text !== "");
  }

  // What passes.
  note(text) {
    say(byId("toast"), text);
    show(byId("toast"), true);
    clearTimeout(this.passing);
    this.passing = setTimeout(() => show(byId("toast"), false), 6000);
  }

  // Doing

  can(name) {
    return TIME.has(name) || (this.store.about.can ?? []).includes(name);
  }

  act(command) {
    this.link.ask({ ...command }).catch((error) => this.note(error.message));
  }

  async seek(us) {
    await this.link.ask({ do: "seek", us: Math.round(us) }).catch((error) => this.note(error.message));
  }

  brokerActs(id, broker) {
    if (!this.can("kill")) return [];
    const node = Number(id);
    const possible = (acts) => acts.filter(([, command]) => this.can(command.do));
    if (broker.state === "down") return possible([["Start", { do: "start", node }], ["Wipe disk", { do: "wipe", node }, true]]);
    const paused = broker.state === "paused" ? ["Resume", { do: "resume-node", node }] : ["Pause", { do: "pause-node", node }];
    return possible([["Kill", { do: "kill", node }, true], paused, ["Stop", { do: "stop", node }], ["Cut power", { do: "power", node }, true], ["Wipe disk", { do: "wipe", node }, true]]);
  }

  async choose(chosen) {
    this.store.selected = chosen;
    this.redraw();
    if ((chosen?.kind !== "message" && chosen?.kind !== "record") || chosen.flight) return;
    try {
      chosen.found = await this.look(chosen);
    } catch (error) {
      chosen.error = error.message;
      chosen.found = undefined;
    }
    if (this.store.selected === chosen) {
      this.store.selected = { ...chosen };
      this.redraw();
    }
  }

  look({ kind, number, node, offset, partition }) {
    if (kind === "message") return this.link.ask({ do: "look", what: kind, number });
    if (this.store.world !== "live") return this.link.ask({ do: "look", what: kind, node, offset, partition });
    const [, topic, index] = /^(.*)-(\d+)$/.exec(partition);
    return this.desk.ask("record", { topic, partition: Number(index), offset, replica: node });
  }

  isChosen(kind, key) {
    const chosen = this.store.selected;
    return chosen?.kind === kind && (chosen.id === key || chosen.key === key);
  }

  choosePartition(name) {
    this.store.choose(name);
    this.logs.base = 0;
    if (this.store.picture.outline) this.link.say({ do: "choose", partition: name });
    this.redraw();
  }

  partitionNumber() {
    return Number(this.store.partition.split("-").at(-1)) || 0;
  }

  // Time

  makeControls() {
    const button = (id, text, label, keys, act) => {
      const node = el("button", { type: "button", id, title: `${label} (${keys})`, "aria-label": label, "aria-keyshortcuts": keys, onclick: act }, text);
      return node;
    };
    this.play = button("play", "▶ Run", "Run or pause", "Space", () => this.toggle());
    this.speed = el("select", { id: "speed", "aria-label": "Speed", onchange: () => this.link.say({ do: "speed", value: Number(this.speed.value) }) },
      SPEEDS.map((speed) => el("option", { value: speed }, `${speed}×`)));
    this.clock = el("output", { id: "clock", "aria-label": "Simulated time" });
    this.seed = el("input", { id: "seed", type: "number", min: 0, step: 1, "aria-label": "Seed" });
    this.nodes = el("select", { id: "nodes", "aria-label": "Brokers" }, [1, 3, 4, 5, 7].map((n) => el("option", { value: n }, `${n} brokers`)));
    this.parts = el("select", { id: "parts", "aria-label": "Partitions" }, [1, 2, 3, 6, 12, 20, 100, 1000].map((n) => el("option", { value: n }, n === 1 ? "1 partition" : `${n} partitions`)));
    this.fresh = el("form", { class: "fresh", onsubmit: (event) => { event.preventDefault(); this.openAnew(); } },
      el("label", {}, "seed ", this.seed), this.nodes, this.parts, el("button", { type: "submit", id: "anew" }, "Begin anew"));
    this.share = el("button", { type: "button", id: "share", onclick: () => this.copyAddress() }, "Copy link");
    byId("controls").append(
      this.play, button("back", "◀ Back", "Step back", "ArrowLeft", () => this.link.say({ do: "back" })),
      button("step", "Step ▶", "Step", "ArrowRight", () => this.link.say({ do: "step" })),
      el("label", {}, "speed ", this.speed), this.clock, el("span", { class: "gap" }), this.fresh, this.share);
  }

  // A moment in the words of the world: seconds, or the number of a step.
  when(us) {
    if (this.store.about.unit === "step") return `step ${Math.round(us / 1e6)}`;
    return this.store.about.begun_us ? clockTime(this.store.about.begun_us + us) : seconds(us);
  }

  // To the millisecond.
  exactly(us) {
    const { begun_us: begun } = this.store.about;
    return begun ? `${this.when(us)}.${String(Math.floor((begun + us) / 1000) % 1000).padStart(3, "0")}` : this.when(us);
  }

  toggle() {
    this.link.say({ do: this.store.picture.state === "running" ? "pause" : "run" });
  }

  openAnew() {
    const start = this.store.world === "simulator" ? this.store.about.start ?? {} : {};
    const nodes = Number(this.nodes.value);
    this.link.say({ do: "open", world: "simulator", ...start, seed: Number(this.seed.value) || 0, nodes, partitions: Number(this.parts.value),
      replication: Math.min(3, nodes), min_isr: Math.min(start.min_isr ?? 2, Math.min(3, nodes)) });
  }

  async copyAddress() {
    const at = this.store.picture.now_us;
    const link = location.href.replace(/#.*/, "") + address.write({ ...this.addressed(), at_us: at });
    try {
      await navigator.clipboard.writeText(link);
      this.note("The link is copied: whoever opens it sees this very run at this moment.");
    } catch {
      this.warn(link);
    }
  }

  addressed() {
    return { world: this.store.world, ...this.store.about.start, journal: this.store.picture.journal };
  }

  writeAddress() {
    if (!this.store.about.start) return;
    const key = JSON.stringify([this.store.world, this.store.about.start, this.store.picture.journal?.length, this.store.picture.journal?.at(-1)]);
    if (key === this.addressKey) return;
    this.addressKey = key;
    this.written = address.write(this.addressed());
    history.replaceState(null, "", this.written);
    if (this.store.world !== "simulator") return;
    if (document.activeElement !== this.seed) this.seed.value = this.store.about.start.seed ?? 1;
    this.nodes.value = this.store.about.start.nodes;
    this.parts.value = this.store.about.start.partitions;
  }

  drawControls() {
    const { state, speed, now_us: now } = this.store.picture;
    const isLive = this.store.world === "live";
    say(this.play, state === "running" ? "❚❚ Pause" : isLive ? "▶ Now" : "▶ Run");
    show(this.speed.parentNode, !isLive);
    show(this.share, !isLive);
    this.drawHealth();
    this.play.disabled = state === "broken" || state === "ended";
    if (document.activeElement !== this.speed && speed !== undefined) this.speed.value = String(speed);
    say(this.clock, this.when(now ?? 0));
    document.body.dataset.state = state ?? "";
    document.body.dataset.world = this.store.world;
    const broken = this.store.picture.broken;
    if (broken && this.brokenTold !== broken.sentence) {
      this.brokenTold = broken.sentence;
      const lost = (broken.lost ?? []).map((each) => `${each.where}: offset ${each.offsets.slice(0, 12).join(", ")}${each.offsets.length > 12 ? " …" : ""}`).join("; ");
      this.warn(`A promise is broken: ${broken.promise}. ${lost ? `Lost records: ${lost}. ` : ""}Step back to see how.`);
    } else if (!broken && this.brokenTold) {
      this.brokenTold = null;
      this.warn("");
    }
  }

  // A live cluster in one sentence, and what it does not tell.
  drawHealth() {
    const { health, notes = [] } = this.store.picture;
    show(byId("health"), health !== undefined && this.desk.at !== "overview"); // which begins with it
    if (health) {
      set(byId("health"), { class: `health ${health.state}` });
      say(byId("health"), health.sentence);
    }
    show(byId("notes"), notes.length > 0);
    say(byId("notes"), notes.join(" "));
  }

  // What the world has nothing to say about is not there.
  drawRooms() {
    const { picture, about } = this.store;
    const hasPicture = this.store.world !== "lab" && !this.desk.isOpen(this.store);
    for (const id of ["stage", "below"]) show(byId(id), hasPicture);
    for (const id of ["controls", "timeline"]) show(byId(id), hasPicture || this.desk.hasTime(this.store));
    show(byId("change"), picture.settings !== undefined);
    show(byId("promises"), picture.lamps !== undefined);
    show(byId("metadata"), (this.store.logs.metadata ?? []).length > 0);
    const isLive = this.store.world === "live";
    show(byId("plots"), isLive || picture.settings !== undefined);
    show(byId("latency"), !isLive || about.hears);
    show(byId("legend"), picture.settings !== undefined || (isLive && about.hears));
    show(this.fresh, this.store.world === "simulator");
    for (const button of byId("worlds").children) {
      show(button, this.store.worlds.includes(button.dataset.world));
      set(button, { "aria-current": String(button.dataset.world === (about.lesson ? "story" : this.store.world)) });
    }
  }

  makeWorlds() {
    const open = (world, text, act) => {
      const button = el("button", { type: "button", class: "quiet", onclick: act }, text);
      button.dataset.world = world;
      return button;
    };
    byId("worlds").append(
      open("live", "Live", () => this.open({ world: "live" })),
      open("simulator", "Sandbox", () => this.open({ world: "simulator" })),
      open("story", "Lessons", () => lessons(this)),
      open("run", "Runs", () => runs(this)),
      open("lab", "Durability lab", () => this.open({ world: "lab" })));
  }

  open(what) {
    this.link.say({ do: "open", ...what });
  }

  drawChoice() {
    const { outline, partitions = {} } = this.store.picture;
    const names = outline ? [] : Object.keys(partitions);
    const parent = byId("partition-choice");
    const key = outline ? "many" : `${names}`;
    if (parent.dataset.key !== key) {
      parent.dataset.key = key;
      this.choice = outline
        ? el("input", { type: "search", "aria-label": "Partition", onchange: () => this.seekPartition(this.choice.value) })
        : el("select", { "aria-label": "Partition", onchange: () => this.choosePartition(this.choice.value) }, names.map((name) => el("option", { value: name }, name)));
      parent.replaceChildren(this.choice);
    }
    if (this.choice.value !== this.store.partition && document.activeElement !== this.choice) this.choice.value = this.store.partition;
  }

  // By its name, or by its number in the topic that is looked at.
  seekPartition(text) {
    const topic = this.store.partition.replace(/-\d+$/, "");
    const found = [text, `${topic}-${text}`].find((name) => this.store.has(name));
    if (found) this.choosePartition(found);
    else this.note(`There is no partition "${text}".`);
    this.choice.blur();
  }

  // Keys, help, light and dark

  makeKeys() {
    // The address says which run, so that a link within the page must not become its end.
    byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
    byId("help").addEventListener("click", () => this.help());
    addEventListener("keydown", (event) => {
      if (event.target.closest("input:not([type=checkbox]), select, textarea, dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (this.desk.isOpen(this.store) && !this.desk.hasTime(this.store) && event.key !== "?") return; // those keys are the picture's
      const number = Number(event.key);
      if (event.key === " " && !event.target.closest("button, [role=button]")) this.toggle();
      else if (event.key === "ArrowRight") this.link.say({ do: "step" });
      else if (event.key === "ArrowLeft") this.link.say({ do: "back" });
      else if (event.key === "?") this.help();
      else if (event.key === "+" || event.key === "-") this.change(event.key === "+" ? 1 : -1);
      else if (event.key === "Escape") this.choose(null);
      else if (number >= 1 && this.store.picture.brokers?.[number]) this.choose({ kind: "broker", id: String(number) });
      else if (event.key === "k" && this.store.selected?.kind === "broker") this.act({ do: "kill", node: Number(this.store.selected.id) });
      else return;
      event.preventDefault();
    });
  }

  change(by) {
    const at = SPEEDS.indexOf(this.store.picture.speed);
    const next = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, (at < 0 ? 4 : at) + by))];
    this.link.say({ do: "speed", value: next });
  }

  help() {
    const keys = [["Space", "run or pause"], ["→", "step: to the next thing that happens"], ["←", "step back"], ["+ −", "faster, slower"],
      ["1 … 9", "choose a broker"], ["k", "kill the chosen broker"], ["Esc", "choose nothing"], ["?", "this help"]];
    const about = ["Every broker here runs the product's own protocol code, on a simulated network, disk and clock.",
      "In a log, colour is the leader epoch in which a record was written; faint records are not committed; the line is the high watermark.",
      "A green ring is the in-sync replicas (ISR), an amber one the eligible leader replicas (ELR), a dashed one a proposal that the controller has not decided. The crown is the leader, C the active controller.",
      "Click a broker, a link, a message or a record to see more and to do something to it. Drag a broker outwards to move it further away, pull a link aside to make it slower, draw a stroke across links to cut them (or to join them again)."];
    this.dialog("What you see", el("div", {}, about.map((text) => el("p", {}, text)), el("dl", { class: "keys" }, keys.flatMap(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]))));
  }

  dialog(title, content, wide = false) {
    const dialog = byId("dialog");
    dialog.classList.toggle("wide", wide);
    dialog.replaceChildren(el("div", { class: "head" }, el("h2", { id: "dialog-title" }, title),
      el("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => dialog.close() }, "×")), content);
    dialog.onclose = () => document.activeElement?.blur(); // keys belong to the page again
    dialog.showModal();
  }

  makeTheme() {
    const root = document.documentElement;
    try { root.dataset.theme = localStorage.getItem("cotidal-theme") ?? ""; } catch { /* private mode */ }
    byId("theme").addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("cotidal-theme", root.dataset.theme); } catch { /* private mode */ }
    });
  }
}

window.cotidal = new Page();
