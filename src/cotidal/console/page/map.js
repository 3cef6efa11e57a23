// The cluster seen from above: brokers, links, clients, and what travels between them.
// A broker that is dragged outwards is further away, a link that is bent is slower, and a stroke across links cuts
// them, or joins them if all of them are cut.

import { el, set, svg, say, Keyed } from "./dom.js";
import { ballot } from "./quorum.js";

const WIDTH = 460;
const HEIGHT = 372;
const CENTER = { x: 230, y: 196 };
const RING = 108;
const BROKER = 26;
const MS_PER_PIXEL = 4; // a broker that is dragged outwards is so much further away
const SLOW_MAX = 240;
const BEHIND_US = 90_000; // how far what is drawn may be behind the world
const LIVE_LATE_US = 900_000; // what brokers tell of themselves comes late; so late is it drawn, so that nothing is missed
const LIVE_BEHIND_US = 500_000;
const CORE = 40; // controllers beside the brokers stand in the middle

const KINDS = {
  Produce: "produce",
  Fetch: "fetch",
  AlterPartition: "alter",
  Vote: "vote",
  BeginQuorumEpoch: "vote",
  EndQuorumEpoch: "vote",
  BrokerHeartbeat: "beat",
};

export const LEGEND = [
  ["produce", "produce"],
  ["fetch", "fetch"],
  ["records", "records"],
  ["alter", "ISR proposal"],
  ["vote", "vote"],
  ["other", "other"],
];

export class ClusterMap {
  constructor(parent, page) {
    this.page = page;
    this.flying = new Map();
    this.dots = new Map(); // number -> the element that shows it
    this.shown = 0; // the moment that is drawn, a little behind the world's
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.links = svg("g");
    this.clients = svg("g");
    this.controllers = svg("g");
    this.flights = svg("g");
    this.brokers = svg("g");
    this.stroke = svg("polyline", { class: "stroke" });
    this.root = svg("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "The cluster: brokers, links, clients",
    }, this.links, this.clients, this.controllers, this.brokers, this.flights, this.stroke);
    this.strokes();
    parent.replaceChildren(this.root);
    this.keyedLinks = new Keyed(this.links, (key) => this.makeLink(key), (node, key, value) => this.drawLink(node, key, value));
    this.keyedBrokers = new Keyed(this.brokers, (key) => this.makeBroker(key), (node, key, value) => this.drawBroker(node, key, value));
    this.keyedControllers = new Keyed(this.controllers, (key) => this.makeController(key), (node, key, value) => this.drawController(node, key, value));
    this.keyedClients = new Keyed(this.clients, () => makeClient(), (node, key, value) => this.drawClient(node, key, value));
    requestAnimationFrame((moment) => this.frame(moment));
  }

  draw(store) {
    this.store = store;
    const picture = store.picture;
    this.partition = store.chosen();
    this.ids = Object.keys(picture.brokers ?? {});
    this.places = new Map();
    this.ids.forEach((id, index) => this.places.set(Number(id), this.home(id, index)));
    const controllers = Object.entries(picture.controllers ?? {});
    controllers.forEach(([id], index) => this.places.set(Number(id), inTheMiddle(index, controllers.length)));
    const clients = Object.entries(picture.clients ?? {}).filter(([, c]) => c.kind === "consumer" || c.label || c.rate || this.isTalking(c));
    this.placeClients(clients);
    const pairs = [];
    this.ids.forEach((one, i) => this.ids.slice(i + 1).forEach((other) => pairs.push([`${one}-${other}`, picture.links?.[`${one}-${other}`] ?? {}])));
    this.keyedLinks.draw(pairs);
    this.keyedBrokers.draw(this.ids.map((id) => [id, picture.brokers[id]]));
    this.keyedControllers.draw(controllers);
    this.keyedClients.draw(clients);
    this.noteFlights(picture);
  }

  // A broker all of whose links are slow stands so much further out.
  home(id, index) {
    const slow = this.ids.filter((other) => other !== id)
      .map((other) => this.store.picture.links?.[pairOf(id, other)]?.slow_ms ?? 0);
    const out = slow.length ? Math.min(...slow, SLOW_MAX) / MS_PER_PIXEL : 0;
    const angle = -Math.PI / 2 + (index * 2 * Math.PI) / this.ids.length;
    const radius = RING + Math.min(out, 60);
    return {
      x: CENTER.x + radius * Math.cos(angle), y: CENTER.y + radius * Math.sin(angle), angle,
    };
  }

  isTalking(client) {
    return Object.values(this.store.picture.flights ?? {}).some((f) => f.source === client.host || f.target === client.host);
  }

  placeClients(clients) {
    for (const [kind, x] of [["producer", 40], ["consumer", WIDTH - 40]]) {
      const mine = clients.filter(([, client]) => client.kind === kind);
      mine.forEach(([, client], index) => {
        this.places.set(client.host, { x, y: CENTER.y + (index - (mine.length - 1) / 2) * 62 });
      });
    }
  }

  // Links

  makeLink(key) {
    const choose = () => this.page.choose({ kind: "link", key });
    const group = svg("g", { class: "link", role: "button", tabindex: 0, onclick: choose, onkeydown: pressed(choose) },
      svg("line", { class: "grip" }), svg("line", { class: "wire" }), svg("text", { class: "link-label", "aria-hidden": true }));
    this.bend(group, key);
    return group;
  }

  drawLink(group, key, link) {
    const [one, other] = key.split("-").map((id) => this.places.get(Number(id)));
    const [grip, wire, label] = group.children;
    const ends = { x1: one.x, y1: one.y, x2: other.x, y2: other.y };
    set(grip, ends);
    set(wire, ends);
    const chosen = this.page.isChosen("link", key) ? " chosen" : "";
    if (this.bent === key) return;
    set(group, { class: `link${link.cut ? " cut" : ""}${link.slow_ms ? " slow" : ""}${chosen}` });
    const state = link.cut ? "cut" : link.slow_ms ? `+${link.slow_ms} ms` : "";
    say(label, link.cut ? "✂ cut" : state);
    set(label, { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 - 5 });
    set(group, { "aria-label": `Link between brokers ${key.replace("-", " and ")}${state ? `, ${state}` : ""}` });
  }

  // How far a link is pulled away from its line is how slow it becomes.
  bend(group, key) {
    const ends = key.split("-").map(Number);
    let from = null;
    let by = 0;
    group.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, y: event.clientY };
      group.setPointerCapture(event.pointerId);
    });
    group.addEventListener("pointermove", (event) => {
      if (!from || !this.page.can("slow")) return;
      if (this.bent !== key && Math.hypot(event.clientX - from.x, event.clientY - from.y) < 8) return;
      this.bent = key;
      const at = this.point(event);
      const [one, other] = ends.map((id) => this.places.get(id));
      const away = Math.abs((other.x - one.x) * (one.y - at.y) - (one.x - at.x) * (other.y - one.y)) / Math.hypot(other.x - one.x, other.y - one.y);
      by = Math.round(Math.min(SLOW_MAX, away * MS_PER_PIXEL) / 10) * 10;
      set(group, { class: "link slow chosen" });
      say(group.children[2], by ? `+${by} ms` : "as fast as it was");
      set(group.children[2], { x: at.x, y: at.y - 8 });
    });
    group.addEventListener("pointerup", () => {
      from = null;
      if (this.bent !== key) return;
      this.bent = null;
      this.page.act({ do: "slow", one: ends[0], other: ends[1], by_ms: by });
    });
    group.addEventListener("pointercancel", () => { from = null; this.bent = null; });
  }

  // A stroke from one empty place to another, across links.
  strokes() {
    let points = null;
    this.root.addEventListener("pointerdown", (event) => {
      if (event.target !== this.root || !this.page.can("cut")) return;
      points = [this.point(event)];
      this.root.setPointerCapture(event.pointerId);
    });
    this.root.addEventListener("pointermove", (event) => {
      if (!points) return;
      points.push(this.point(event));
      set(this.stroke, { points: points.map((at) => `${at.x.toFixed(1)},${at.y.toFixed(1)}`).join(" ") });
    });
    const end = (event) => {
      if (points && event.type === "pointerup") this.cutAcross(points);
      points = null;
      set(this.stroke, { points: "" });
    };
    this.root.addEventListener("pointerup", end);
    this.root.addEventListener("pointercancel", end);
  }

  cutAcross(points) {
    const crossed = [...this.keyedLinks.nodes.keys()].filter((key) => {
      const [one, other] = key.split("-").map((id) => this.places.get(Number(id)));
      return points.some((at, index) => index > 0 && cross(points[index - 1], at, one, other));
    });
    const whole = crossed.filter((key) => !this.store.picture.links?.[key]?.cut);
    for (const key of whole.length ? whole : crossed) {
      const [one, other] = key.split("-").map(Number);
      this.page.act({ do: whole.length ? "cut" : "join", one, other });
    }
  }

  point(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(this.root.getScreenCTM().inverse());
  }

  // Brokers

  makeBroker(id) {
    const choose = () => this.page.choose({ kind: "broker", id });
    const group = svg("g", { class: "broker", role: "button", tabindex: 0, onkeydown: pressed(choose) },
      svg("circle", { class: "halo", r: BROKER + 7 }), svg("circle", { class: "body", r: BROKER }),
      svg("text", { class: "broker-id", y: 6, "aria-hidden": true }), svg("text", { class: "broker-state", y: BROKER + 21, "aria-hidden": true }),
      svg("path", { class: "crown", d: "M-11 -38 l-2 -12 7 5 6 -8 6 8 7 -5 -2 12z" }),
      svg("g", { class: "controller", "aria-hidden": true }, svg("circle", { cx: 22, cy: -22, r: 9 }), svg("path", { d: "M25.2 -25 a4.300 4.300 0 1 0 0 6" })));
    this.drag(group, id, choose);
    return group;
  }

  drawBroker(group, id, broker) {
    const place = this.places.get(Number(id));
    const partition = this.partition;
    const number = Number(id);
    const leads = partition?.leader === number && broker.state !== "down";
    const inIsr = partition?.isr.includes(number);
    const eligible = partition?.elr.includes(number);
    const proposed = partition?.proposed && partition.proposed.includes(number) !== inIsr;
    const term = broker.quorum?.role === "leader" ? broker.quorum.epoch : null;
    if (this.dragged !== id) set(group, { transform: `translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})` });
    const words = ["broker", broker.state, leads && "leads", inIsr && "isr", eligible && "elr", proposed && "proposed",
      term !== null && "controls", partition?.replicas.includes(number) ? "" : "spare", this.page.isChosen("broker", id) && "chosen"];
    set(group, { class: words.filter(Boolean).join(" ") });
    say(group.children[2], id);
    const does = broker.state === "up" ? ballot(broker, this.store.picture) : broker.state;
    say(group.children[3], does && ` ${does}`); // as its name goes on
    const told = [`Broker ${id} ${does || broker.state}`, leads && `leads ${this.store.partition}`, inIsr ? "in the ISR" : "not in the ISR",
      eligible && "eligible leader", proposed && "an ISR with it is proposed", term !== null && `active controller, term ${term}`];
    set(group, { "aria-label": told.filter(Boolean).join(", ") });
  }

  // Controllers that are no brokers

  makeController(id) {
    const choose = () => this.page.choose({ kind: "broker", id });
    return svg("g", { class: "voter", role: "button", tabindex: 0, onclick: choose, onkeydown: pressed(choose) },
      svg("rect", { class: "body", x: -14, y: -14, width: 28, height: 28, rx: 6 }), svg("text", { class: "voter-id", y: 5, "aria-hidden": true }),
      svg("text", { class: "voter-state", y: 26, "aria-hidden": true }));
  }

  drawController(group, id, controller) {
    const place = this.places.get(Number(id));
    const leads = controller.quorum?.role === "leader";
    set(group, { transform: `translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})`, class: ["voter", controller.state, leads && "controls", this.page.isChosen("broker", id) && "chosen"].filter(Boolean).join(" ") });
    say(group.children[1], id);
    const does = controller.state === "up" ? ballot(controller, this.store.picture) : controller.state;
    say(group.children[2], does && ` ${does}`);
    set(group, { "aria-label": `Controller ${id} ${does || controller.state}${leads ? `, active, term ${controller.quorum.epoch}` : ""}` });
  }

  drag(group, id, choose) {
    let from = null;
    group.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, y: event.clientY };
      group.setPointerCapture(event.pointerId);
    });
    group.addEventListener("pointermove", (event) => {
      if (!from || (this.dragged !== id && Math.hypot(event.clientX - from.x, event.clientY - from.y) < 8)) return;
      if (!this.page.can("slow")) return;
      this.dragged = id;
      const by = this.outwards(event, id);
      const { angle } = this.places.get(Number(id));
      const radius = RING + by / MS_PER_PIXEL;
      set(group, { transform: `translate(${CENTER.x + radius * Math.cos(angle)} ${CENTER.y + radius * Math.sin(angle)})` });
      say(group.children[3], by ? `+${by} ms` : "near");
    });
    group.addEventListener("pointerup", (event) => {
      if (this.dragged === id) {
        this.dragged = null;
        this.page.act({ do: "slow", node: Number(id), by_ms: this.outwards(event, id) });
      } else if (from) choose();
      from = null;
    });
    group.addEventListener("pointercancel", () => { from = null; this.dragged = null; });
  }

  // How far out a broker is dragged, in milliseconds.
  outwards(event, id) {
    const point = this.point(event);
    const { angle } = this.places.get(Number(id));
    const along = (point.x - CENTER.x) * Math.cos(angle) + (point.y - CENTER.y) * Math.sin(angle);
    return Math.round(Math.min(SLOW_MAX, Math.max(0, (along - RING) * MS_PER_PIXEL)) / 10) * 10;
  }

  // Clients

  drawClient(group, name, client) {
    const place = this.places.get(client.host);
    set(group, { transform: `translate(${place.x} ${place.y})`, class: `client ${client.kind}` });
    const at = client.positions?.[this.store.partition];
    const label = client.label ?? (client.kind === "producer" ? name : `${name} @${at ?? 0}`);
    say(group.children[1], client.kind === "producer" ? "P" : "C");
    say(group.children[2], label.length > 14 ? `${label.slice(0, 13)}…` : label);
    const from = client.reads_from?.[this.store.partition];
    const what = client.label ? `${client.kind === "producer" ? "Producer" : "Consumer"} ${client.label}` : client.kind === "producer" ? `Producer ${name}, ${client.rate} a second` : `Consumer ${name} at offset ${at}${from ? `, reads from ${from}` : ""}`;
    say(group.children[3], what);
  }

  // What travels

  noteFlights(picture) {
    if (this.store.world === "live") {
      this.noteLive(picture);
      return;
    }
    const flights = picture.flights ?? {};
    const now = picture.now_us ?? 0;
    if (now < this.now || now - this.now > 2e6) {
      this.flying.clear();
      this.shown = now;
    }
    this.now = now;
    for (const [number, flight] of Object.entries(flights)) this.flying.set(number, flight);
    for (const [number, flight] of this.flying) {
      if (!(number in flights) && (flight.arrives_us < 0 || flight.arrives_us > now)) this.flying.delete(number);
    }
  }

  // Brokers told of these: those of the moment that is drawn, and of the next second.
  noteLive(picture) {
    this.now = (picture.now_us ?? 0) - (picture.state === "running" ? LIVE_LATE_US : 0);
    if (Math.abs(this.now - this.shown) > 2e6) this.shown = this.now;
    const { flights } = this.store.logs;
    this.flying.clear();
    for (let i = flights.length - 1; i >= 0 && flights[i].at > this.shown - 2e6; i--) {
      if (flights[i].arrives_us >= this.shown && flights[i].sent_us < this.shown + 1e6) this.flying.set(String(flights[i].number), flights[i]);
    }
  }

  frame(moment) {
    const passed = Math.min(100, moment - (this.lastFrame ?? moment));
    this.lastFrame = moment;
    const picture = this.store?.picture;
    if (picture) {
      const speed = picture.state === "running" ? picture.speed : 0;
      const behind = this.store.world === "live" ? LIVE_BEHIND_US : BEHIND_US;
      if (speed) this.shown = Math.min(this.now, Math.max(this.shown + passed * 1000 * speed, this.now - behind * speed));
      else this.shown = this.now;
      this.moveFlights(speed > 0);
    }
    requestAnimationFrame((next) => this.frame(next));
  }

  moveFlights(running) {
    const wanted = new Set();
    for (const [number, flight] of this.flying) {
      const from = this.places.get(flight.source);
      const to = this.places.get(flight.target);
      if (!from || !to || from === to) continue;
      const stalled = flight.arrives_us < 0;
      if (!stalled && flight.arrives_us < this.shown) {
        this.flying.delete(number);
        continue;
      }
      const part = stalled ? 0.5 : this.still.matches && running ? 0.5 : (this.shown - flight.sent_us) / Math.max(1, flight.arrives_us - flight.sent_us);
      if (part < 0) continue;
      wanted.add(number);
      this.moveFlight(number, flight, from, to, Math.min(1, part));
    }
    for (const [number, node] of this.dots) {
      if (wanted.has(number)) continue;
      node.remove();
      this.dots.delete(number);
    }
  }

  moveFlight(number, flight, from, to, part) {
    let node = this.dots.get(number);
    if (!node) {
      const choose = () => this.page.choose({ kind: "message", number: Number(number), flight: flight.said === undefined ? undefined : flight });
      const size = flight.said === undefined ? 140 : 0; // a live one tells the bytes of its records only
      const kind = flight.api === "Fetch" && flight.answer && flight.bytes > size ? "records" : KINDS[flight.api] ?? "other";
      const what = `${flight.api} ${flight.answer ? "answer" : "request"} from ${nameOf(flight.source, this.store.picture)} to ${nameOf(flight.target, this.store.picture)}`;
      node = svg("g", { class: `flight ${kind}${flight.answer ? " answer" : ""}`, role: "button", tabindex: -1, "aria-label": what, onclick: choose },
        svg("circle", { class: "grip", r: 10 }), svg("circle", { class: "dot", r: kind === "other" || kind === "beat" ? 2.6 : 4.6 }), svg("title", {}, what));
      node.dataset.number = number;
      this.dots.set(number, node);
      this.flights.append(node);
    }
    // Two ways between two places: each keeps to its right.
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const side = { x: (-(to.y - from.y) / length) * 5, y: ((to.x - from.x) / length) * 5 };
    const x = from.x + (to.x - from.x) * part + side.x;
    const y = from.y + (to.y - from.y) * part + side.y;
    const place = `translate(${x.toFixed(1)} ${y.toFixed(1)})`;
    if (node.placed !== place) node.setAttribute("transform", node.placed = place);
  }
}

// Do two lines, each between two points, cross?
function cross(a, b, c, d) {
  const side = (p, q, r) => Math.sign((q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x));
  return side(a, b, c) !== side(a, b, d) && side(c, d, a) !== side(c, d, b);
}

function makeClient() {
  return svg("g", { class: "client" }, svg("rect", { x: -17, y: -15, width: 34, height: 30, rx: 7 }),
    svg("text", { class: "client-kind", y: 5 }), svg("text", { class: "client-label", y: 29 }), svg("title"));
}

// A small ring.
function inTheMiddle(index, count) {
  const angle = -Math.PI / 2 + (index * 2 * Math.PI) / count;
  const radius = count > 1 ? CORE : 0;
  return { x: CENTER.x + radius * Math.cos(angle), y: CENTER.y + radius * Math.sin(angle), angle };
}

export function nameOf(host, { clients = {}, controllers = {} } = {}) {
  if (host < 1000) return `${host in controllers ? "controller" : "broker"} ${host}`;
  return Object.values(clients).find((client) => client.host === host)?.label ?? "a client";
}

export const pairOf = (one, other) => (Number(one) < Number(other) ? `${one}-${other}` : `${other}-${one}`);

export const pressed = (act) => (event) => {
  if (event.key === "Enter") {
    event.preventDefault();
    act();
  }
};

export function legend(parent) {
  parent.replaceChildren(...LEGEND.map(([kind, text]) => el("span", { class: "key" },
    svg("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, class: `flight ${kind === "records" ? "records answer" : kind}` },
      svg("circle", { class: "dot", r: kind === "other" ? 2.6 : 4.6 })), text)));
}
