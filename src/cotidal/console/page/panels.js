// What stands around the picture: sentences, promises, tables, and what can be changed.

import { el, set, say, show, Keyed, seconds } from "./dom.js";
import { moment } from "./desk/parts.js";
import { nameOf } from "./map.js";

const FEED_MAX = 250;
const METADATA_MAX = 150;

export class Feed {
  constructor(page) {
    this.page = page;
    this.headline = document.getElementById("headline");
    this.list = document.getElementById("feed");
    this.all = document.getElementById("feed-all");
    this.all.addEventListener("change", () => { this.drawn = null; this.page.redraw(); });
    this.keyed = new Keyed(this.list, (key, item) => this.make(item), () => {});
  }

  draw(store) {
    const told = store.logs.told;
    const last = told.at(-1);
    const key = `${told.length}/${last?.at}/${this.all.checked}`;
    if (key === this.drawn) return;
    this.drawn = key;
    const from = Math.max(0, told.length - 4000);
    const items = [];
    for (let i = told.length - 1; i >= from && items.length < FEED_MAX; i--) {
      if (this.all.checked || told[i].big) items.push([`${told[i].at}/${i}`, told[i]]);
    }
    this.keyed.draw(items);
    this.drawHeadline(store, told);
  }

  // While it runs: what a person would tell. Standing still: the very last thing.
  drawHeadline(store, told) {
    const happened = store.picture.lesson?.happened; // a story says what came of its last command
    if (happened) {
      say(this.headline, happened.join("\n") || "Nothing happens.");
      set(this.headline, { class: "headline script" });
      return;
    }
    const now = store.picture.now_us ?? 0;
    const running = store.picture.state === "running";
    let item = told.at(-1);
    if (running) {
      const pace = Math.max(1, store.picture.speed) * 2e6;
      for (let i = told.length - 1; i >= 0 && told[i].at > now - pace; i--) {
        if (told[i].big) { item = told[i]; break; }
      }
    }
    say(this.headline, item?.text ?? "");
    set(this.headline, { class: `headline ${item?.kind ?? ""}` });
  }

  make(item) {
    const go = this.page.can("seek")
      ? el("button", { type: "button", class: "when", "aria-label": `Go to ${this.page.when(item.at)}`, onclick: () => this.page.seek(item.at) }, item.when ?? (item.at / 1e6).toFixed(3))
      : el("span", { class: "when" }, item.when ?? "");
    return el("li", { class: `${item.kind}${item.big ? " big" : ""}` }, go, el("span", {}, item.text));
  }
}

export class Promises {
  constructor(parent) {
    this.list = el("ul", { class: "lamps" });
    this.note = el("p", { class: "note" });
    this.title = el("h2", { id: "promises-title" }, "Promises");
    parent.replaceChildren(this.title, this.list, this.note);
    this.keyed = new Keyed(this.list, (name, [, text]) => el("li", { title: text }, el("span", { class: "lamp", "aria-hidden": "true" }), el("span", {})),
      (node, name, [state, text]) => {
        set(node, { class: state });
        say(node.lastChild, state === "holds" ? text : `${text} (${this.words[state] ?? state})`);
      });
  }

  draw(store) {
    const texts = store.about.promises ?? {};
    this.words = store.world === "live" ? { broken: "no" } : {};
    say(this.title, store.world === "live" ? "Is it well?" : "Promises");
    say(this.note, store.about.promises_note ?? "Looked at after every step of every node, by the simulator's own checkers.");
    this.keyed.draw(Object.entries(store.picture.lamps ?? {}).map(([name, state]) => [name, [state, texts[name] ?? name]]));
  }
}

export class MetadataLog {
  constructor(parent) {
    this.list = el("ol", { class: "metadata", tabindex: 0, "aria-label": "Committed metadata, newest first" });
    parent.replaceChildren(el("h2", { id: "metadata-title" }, "Metadata log"), this.list);
    this.keyed = new Keyed(this.list, (key, item) => el("li", {}, el("span", { class: "when" }, String(item.offset)), el("span", { class: "term", title: "term" }, `t${item.epoch}`), el("span", {}, item.text)), () => {});
  }

  draw(store) {
    const log = store.logs.metadata;
    if (log.length === this.drawn && log.at(-1)?.text === this.last) return;
    this.drawn = log.length;
    this.last = log.at(-1)?.text;
    this.keyed.draw(log.slice(-METADATA_MAX).reverse().map((item) => [item.offset, item]));
  }
}

// Settings and clients, while it runs.
export class Changes {
  constructor(parent, page) {
    this.page = page;
    const act = (command) => page.act(command);
    this.minIsr = number("Min ISR", 1, 7, (value) => act({ do: "min-isr", value }), "min.insync.replicas");
    this.lag = number("Lag time, ms", 200, 60000, (ms) => act({ do: "lag", ms }), "replica.lag.time.max.ms", 100);
    this.unclean = check("Unclean election", (on) => act({ do: "unclean", on }), "unclean.leader.election.enable");
    this.elr = check("Eligible leader replicas", (on) => act({ do: "elr", on }), "KIP-966");
    this.rates = Object.fromEntries(["all", "1", "0"].map((level) =>
      [level, number(`acks=${level}`, 0, 200, (per_second) => act({ do: "rate", acks: level, per_second }), "records a second")]));
    this.value = el("input", { type: "text", maxlength: 1000, placeholder: "a record", "aria-label": "Record to produce" });
    this.acks = el("select", { "aria-label": "acks" }, ["all", "1", "0"].map((level) => el("option", { value: level }, `acks=${level}`)));
    const produce = el("form", { class: "line", onsubmit: (event) => { event.preventDefault(); act({ do: "produce", acks: this.acks.value, value: this.value.value, partition: page.partitionNumber() }); this.value.value = ""; } },
      this.value, this.acks, el("button", { type: "submit" }, "Produce"));
    this.near = el("select", { "aria-label": "Where the consumer is" });
    const consume = el("div", { class: "line" }, this.near, el("button", { type: "button", onclick: () => act({ do: "add-consumer", near: Number(this.near.value) }) }, "Add consumer"));
    this.consumers = el("ul", { class: "consumers" });
    this.keyed = new Keyed(this.consumers, (name) => el("li", {}, el("span"), el("button", { type: "button", class: "small", "aria-label": `Remove consumer ${name}`, onclick: () => act({ do: "drop-consumer", name }) }, "Remove")),
      (node, name, text) => say(node.firstChild, text));
    const elect = el("div", { class: "line" }, el("button", { type: "button", onclick: () => act({ do: "elect", partition: page.partitionNumber() }) }, "Elect preferred leader"),
      el("button", { type: "button", class: "risky", onclick: () => act({ do: "elect", unclean: true, partition: page.partitionNumber() }) }, "Elect uncleanly"));
    parent.replaceChildren(el("h2", { id: "change-title" }, "Change while it runs"),
      el("div", { class: "fields" }, this.minIsr, this.lag, this.unclean, this.elr),
      el("h3", {}, "Producers, records a second"), el("div", { class: "fields three" }, ...Object.values(this.rates)), produce,
      el("h3", {}, "Consumers"), consume, this.consumers, el("h3", {}, "Leader"), elect);
  }

  draw(store) {
    const { settings, clients = {}, brokers = {} } = store.picture;
    if (settings) {
      put(this.minIsr, settings.min_isr);
      put(this.lag, settings.lag_ms);
      tick(this.unclean, settings.unclean);
      tick(this.elr, settings.elr);
    }
    for (const client of Object.values(clients)) if (client.kind === "producer" && client.acks) put(this.rates[client.acks], client.rate);
    const ids = Object.keys(brokers);
    if (this.near.options.length !== ids.length + 1) {
      this.near.replaceChildren(el("option", { value: 0 }, "reads from leaders"), ...ids.map((id) => el("option", { value: id }, `near broker ${id} (follower fetching)`)));
    }
    const consumers = Object.entries(clients).filter(([, client]) => client.kind === "consumer" && client.positions);
    this.keyed.draw(consumers.map(([name, client]) => {
      const from = client.reads_from[store.partition];
      return [name, `${name}: at ${client.positions[store.partition] ?? 0}${from ? `, from ${from.replace("node-", "broker ")}` : ""}`];
    }));
  }
}

// What a person has just set stays as it is until the world says so too, or has had its time.
const PATIENCE_MS = 3000;

function wish(field, value) {
  field.wished = value;
  field.until = performance.now() + PATIENCE_MS;
}

function isWished(field, value) {
  if (field.wished === undefined) return false;
  if (field.wished === value || performance.now() > field.until) field.wished = undefined;
  return field.wished !== undefined;
}

function number(text, least, most, change, title, step = 1) {
  const input = el("input", { type: "number", min: least, max: most, step, onchange: () => {
    if (!input.reportValidity()) return;
    wish(field, Number(input.value));
    change(Number(input.value));
  } });
  const field = el("label", { class: "field", title }, el("span", {}, text), input);
  return field;
}

function check(text, change, title) {
  const input = el("input", { type: "checkbox", onchange: () => { wish(field, input.checked); change(input.checked); } });
  const field = el("label", { class: "field check", title }, input, el("span", {}, text));
  return field;
}

function put(field, value) {
  const input = field.querySelector("input");
  if (document.activeElement !== input && !isWished(field, value) && input.value !== String(value)) input.value = value;
}

function tick(field, value) {
  const input = field.querySelector("input");
  if (!isWished(field, value) && input.checked !== value) input.checked = value;
}

export class Detail {
  constructor(page) {
    this.page = page;
    this.root = document.getElementById("detail");
  }

  draw(store) {
    const chosen = store.selected;
    show(this.root, chosen !== null);
    if (!chosen) { this.key = null; return; }
    const key = JSON.stringify([chosen, this.stateOf(store, chosen)]);
    if (key === this.key) return;
    this.key = key;
    const { title, lines, acts } = this.told(store, chosen);
    this.root.replaceChildren(
      el("div", { class: "head" }, el("h3", {}, title), el("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => this.page.choose(null) }, "×")),
      ...lines.map(([name, value]) => el("p", {}, el("b", {}, name), " ", el("span", { class: "value" }, value))),
      acts.length ? el("div", { class: "acts" }, acts) : "");
  }

  stateOf(store, chosen) {
    switch (chosen.kind) {
      case "broker": return [store.picture.controllers?.[chosen.id], store.chosen()?.why_out?.[chosen.id], store.chosen()?.if_elected?.[chosen.id], store.picture.brokers?.[chosen.id], Object.entries(store.picture.links ?? {}).filter(([key]) => key.split("-").includes(chosen.id))];
      case "link": return store.picture.links?.[chosen.key];
      case "message": return chosen.flight ? causedLive(store, chosen.flight) : [chosen.found, caused(store, chosen.found)];
      default: return chosen.found;
    }
  }

  told(store, chosen) {
    switch (chosen.kind) {
      case "broker": return this.broker(store, chosen.id);
      case "link": return this.link(store, chosen.key);
      case "message": return this.message(store, chosen);
      default: return this.record(chosen);
    }
  }

  broker(store, id) {
    const isController = store.picture.brokers[id] === undefined;
    const broker = store.picture.brokers[id] ?? store.picture.controllers?.[id] ?? { state: "gone" };
    const quorum = broker?.quorum;
    const lines = [["State", broker.incarnation === undefined ? broker.state : `${broker.state}, incarnation ${broker.incarnation}`]];
    if (broker.address) lines.push(["Address", `${broker.address}${broker.rack ? `, in ${broker.rack}` : ""}`]);
    const why = store.chosen()?.why_out?.[id];
    if (why) lines.push([`Not in sync with ${store.partition}`, why]);
    const loss = store.chosen()?.if_elected?.[id];
    if (loss) lines.push(["If it were elected now, lost", loss]);
    if (quorum) lines.push(["Quorum", `${quorum.role} in term ${quorum.epoch}${quorum.voted ? `, voted for ${quorum.voted}` : ""}; metadata to ${quorum.end}, committed ${quorum.high_watermark}`]);
    const acts = this.page.brokerActs(id, broker).map(([text, command, risky]) => this.button(text, command, risky));
    if (this.page.can("slow")) acts.push(this.slowness({ node: Number(id) }, "Distance"));
    return { title: `${isController ? "Controller" : "Broker"} ${id}`, lines, acts };
  }

  link(store, key) {
    const link = store.picture.links?.[key] ?? {};
    const [one, other] = key.split("-").map(Number);
    const lines = [["State", link.cut ? "cut: what is sent waits" : link.slow_ms ? `${link.slow_ms} ms slower each way` : "whole"]];
    const acts = this.page.can("cut") ? [link.cut ? this.button("Join", { do: "join", one, other }) : this.button("Cut", { do: "cut", one, other }, true),
      this.slowness({ one, other }, "Slower by", link.slow_ms)] : [];
    return { title: `Link ${one} – ${other}`, lines, acts };
  }

  slowness(which, text, value = 0) {
    const out = el("output", {}, `${value} ms`);
    const input = el("input", { type: "range", min: 0, max: 400, step: 10, value, "aria-label": `${text}, milliseconds each way`,
      oninput: () => say(out, `${input.value} ms`), onchange: () => this.page.act({ do: "slow", ...which, by_ms: Number(input.value) }) });
    return el("label", { class: "field slow" }, el("span", {}, text), input, out);
  }

  // As the broker told that received the request, or sent the answer.
  liveMessage(store, flight) {
    const lines = [["From, to", `${nameOf(flight.source, store.picture)} to ${nameOf(flight.target, store.picture)}${flight.bytes ? `, ${flight.bytes} bytes of records` : ""}`],
      [flight.answer ? "Sent" : "Received", this.page.exactly(flight.at)], [`${flight.api} ${flight.answer ? "answer" : "request"}`, flight.said]];
    for (const text of causedLive(store, flight)) lines.push([flight.answer ? "With it" : "Caused", text]);
    return { title: "Message", lines, acts: [] };
  }

  message(store, chosen) {
    if (chosen.flight) return this.liveMessage(store, chosen.flight);
    const found = chosen.found;
    if (!found) return { title: "Message", lines: [["", chosen.error ?? "…"]], acts: [] };
    const lines = [["From, to", `${nameOf(found.source, store.picture)} to ${nameOf(found.target, store.picture)}, ${found.bytes} bytes`],
      ["Sent", `${seconds(found.sent_us)}${found.arrives_us >= 0 ? `, arrives ${seconds(found.arrives_us)}` : ", held back by a cut link"}`]];
    for (const said of found.said) lines.push([`${said.api} ${said.is_answer ? "answer" : "request"}`, said.gist]);
    for (const text of caused(store, found)) lines.push(["Caused", text]);
    const acts = found.under_way && this.page.can("lose") ? [this.button("Lose it", { do: "lose", message: chosen.number }, true)] : [];
    return { title: "Message", lines, acts };
  }

  record(chosen) {
    const found = chosen.found;
    const title = `Offset ${chosen.offset} on broker ${chosen.node}`;
    if (!found) return { title, lines: [["", chosen.error ?? "…"]], acts: [] };
    if (typeof found.value === "object") return { title, lines: liveRecord(found), acts: [] };
    const lines = [["Value", found.value], ["Bytes", `${found.bytes}: ${found.hex}`], ["Leader epoch", String(found.epoch)]];
    if (found.producer >= 0) lines.push(["Producer", `${found.producer}, sequence ${found.sequence}`]);
    return { title, lines, acts: [] };
  }

  button(text, command, risky = false) {
    return el("button", { type: "button", class: risky ? "risky" : "", onclick: () => this.page.act(command) }, text);
  }
}

// As a live replica serves it.
function liveRecord({ key, value, marker, timestamp, epoch, producer }) {
  const shown = (each) => (each.form === "null" ? "null" : `${each.text}${each.cut ? " …" : ""}`);
  const lines = marker ? [["Marker", `${marker} of a transaction`]] : [["Key", shown(key)], ["Value", shown(value)], ["Bytes", String(value.bytes)]];
  lines.push(["Time (UTC)", moment(timestamp)], ["Leader epoch", String(epoch)]);
  if (producer) lines.push(["Producer", `${producer.id}, epoch ${producer.epoch}, sequence ${producer.sequence}`]);
  return lines;
}

// What its receiver did at the moment at which it arrived.
function caused(store, found) {
  if (!found || found.arrives_us < 0) return [];
  const { told } = store.logs;
  const texts = [];
  for (let i = told.length - 1; i >= 0 && told[i].at >= found.arrives_us; i--) {
    if (told[i].at === found.arrives_us && told[i].node === found.target) texts.unshift(told[i].text);
  }
  return texts;
}

// What else its node did in the same step.
function causedLive(store, flight) {
  const { trace } = store.logs;
  const texts = [];
  for (let i = trace.length - 1; i >= 0 && trace[i].at >= flight.at; i--) {
    const { node, step, kind, text } = trace[i];
    if (node === flight.node && step === flight.step && text !== flight.said) texts.unshift(`${kind} ${text}`);
  }
  return texts;
}
