// How long acknowledgements took, by level, how much was acknowledged, and how far replicas are behind.

import { clockTime, el, svg, say, set } from "./dom.js";

const WIDTH = 420;
const HEIGHT = 150;
const LEFT = 40;
const BOTTOM = 20;
const WINDOW_US = 20e6;

class Plot {
  constructor(parent, title, id, about) {
    this.marks = svg("g");
    this.axis = svg("g", { class: "axis" });
    this.note = el("p", { class: "note" });
    this.root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": about }, this.axis, this.marks);
    parent.replaceChildren(el("h2", { id }, title), this.root, this.note);
  }

  frame({ from, to, begun }, ticks, y) {
    const key = JSON.stringify([Math.round(from / 1e6), Math.round(to / 1e6), ticks]);
    if (this.framed === key) return;
    this.framed = key;
    const when = (us) => (begun ? clockTime(begun + us) : `${(us / 1e6).toFixed(0)} s`);
    this.axis.replaceChildren(
      ...ticks.flatMap(([value, text]) => [
        svg("line", { x1: LEFT, x2: WIDTH - 4, y1: y(value), y2: y(value) }),
        svg("text", { x: LEFT - 5, y: y(value) + 3.5, "text-anchor": "end" }, text)]),
      svg("text", { x: LEFT, y: HEIGHT - 4 }, when(from)),
      svg("text", { x: WIDTH - 4, y: HEIGHT - 4, "text-anchor": "end" }, when(to)));
  }

  span(store) {
    const to = Math.max(store.picture.now_us ?? 0, WINDOW_US / 4);
    const from = Math.max(0, to - WINDOW_US);
    return { from, to, begun: store.about.begun_us, x: (at) => LEFT + ((at - from) / (to - from)) * (WIDTH - LEFT - 4) };
  }
}

export class LatencyPlot extends Plot {
  constructor(parent) {
    super(parent, "Acknowledgement latency", "latency-title", "Latency of acknowledgements by level of acks, over time");
    // One path of points each: hundreds of elements would be made anew with every picture.
    this.paths = { all: svg("path", { class: "points acks-all" }), 1: svg("path", { class: "points acks-1" }) };
    this.marks.append(...Object.values(this.paths));
  }

  draw(store) {
    const span = this.span(store);
    const { from, to, x } = span;
    const least = store.world === "live" ? 0.1 : 1; // brokers on one machine are quicker than a simulated network
    const decades = Math.log10(10_000 / least);
    const y = (ms) => HEIGHT - BOTTOM - (Math.log10(Math.max(least, Math.min(10_000, ms)) / least) / decades) * (HEIGHT - BOTTOM - 8);
    this.frame(span, [[0.1, "0.1 ms"], [1, "1 ms"], [10, "10"], [100, "100"], [1000, "1 s"], [10000, "10 s"]].filter(([ms]) => ms >= least), y);
    const recent = store.logs.samples.filter((each) => each.at >= from && each.at <= to).slice(-600);
    const key = `${recent.length}/${recent.at(-1)?.at}/${Math.round(from / 1e5)}/${Math.round(to / 1e5)}`;
    if (key === this.key) return;
    this.key = key;
    for (const [level, path] of Object.entries(this.paths)) {
      const points = recent.filter((each) => each.acks === level).map((each) => `M${x(each.at).toFixed(1)} ${y(each.us / 1000).toFixed(1)}h0`);
      set(path, { d: points.join("") });
    }
    say(this.note, ["all", "1"].map((level) => medianOf(recent, level, store.world === "live" ? " told" : "")).filter(Boolean).join(" · ") || "Nothing was acknowledged in the last 20 s.");
  }
}

// Of a busy broker a part of them is told.
function medianOf(samples, level, sampled = "") {
  const took = samples.filter((each) => each.acks === level).map((each) => each.us).sort((a, b) => a - b);
  if (!took.length) return "";
  return `${level === "all" ? "●" : "■"} acks=${level}: median ${(took[took.length >> 1] / 1000).toFixed(1)} ms, ${took.length}${sampled} in 20 s`;
}

export class LagPlot extends Plot {
  constructor(parent) {
    super(parent, "Replica lag", "lag-title", "Records that each follower is behind its leader, over time");
  }

  draw(store) {
    const span = this.span(store);
    const { from, to, x } = span;
    const recent = store.lags.filter((each) => each.at >= from);
    const most = Math.max(4, ...recent.flatMap((each) => Object.values(each.lag)));
    const top = niceTop(most);
    const y = (records) => HEIGHT - BOTTOM - (Math.min(records, top) / top) * (HEIGHT - BOTTOM - 10);
    this.frame(span, [[0, "0"], [top / 2, String(top / 2)], [top, String(top)]], y);
    const nodes = [...new Set(recent.flatMap((each) => Object.keys(each.lag)))].sort();
    const key = `${recent.length}/${recent.at(-1)?.at}/${top}/${nodes}`;
    if (key === this.key) return;
    this.key = key;
    const thinned = recent.length > 400 ? recent.filter((_, i) => i % Math.ceil(recent.length / 400) === 0) : recent;
    this.marks.replaceChildren(...nodes.map((node) => svg("polyline", {
      class: `lag b${node}`, points: thinned.filter((each) => node in each.lag).map((each) => `${x(each.at).toFixed(1)},${y(each.lag[node]).toFixed(1)}`).join(" "),
    })));
    const last = recent.at(-1)?.lag ?? {};
    say(this.note, Object.entries(last).map(([node, lag]) => `broker ${node}: ${lag} behind`).join(" · "));
  }
}

// Records acknowledged a second, by level, in steps of a second.
export class ThroughputPlot extends Plot {
  constructor(parent) {
    super(parent, "Throughput", "throughput-title", "Records acknowledged each second, by level of acks, over time");
  }

  draw(store) {
    const span = this.span(store);
    const { from, to, x } = span;
    const { throughput: written = [] } = store.logs;
    const samples = store.world === "live" ? [] : store.logs.samples; // of a live cluster they are a part
    const key = `${samples.length}/${samples.at(-1)?.at}/${written.length}/${written.at(-1)?.at}/${Math.round(from / 1e5)}/${Math.round(to / 1e5)}`;
    if (key === this.key) return;
    this.key = key;
    const first = Math.floor(from / 1e6);
    const bins = Array.from({ length: Math.ceil(to / 1e6) - first }, () => ({ all: 0, 1: 0, bytes: 0 }));
    for (let i = samples.length - 1; i >= 0 && samples[i].at >= first * 1e6; i--) {
      const bin = bins[Math.floor(samples[i].at / 1e6) - first];
      if (!bin) continue;
      bin[samples[i].acks] += 1;
      bin.bytes += samples[i].bytes ?? 0;
    }
    for (let i = written.length - 1; i >= 0 && written[i].at >= first * 1e6; i--) spread(written[i], bins, first);
    const top = niceTop(Math.max(4, ...bins.map((bin) => bin.all + bin[1])));
    const y = (records) => HEIGHT - BOTTOM - (Math.min(records, top) / top) * (HEIGHT - BOTTOM - 10);
    this.frame(span, [[0, "0"], [top / 2, String(top / 2)], [top, String(top)]], y);
    this.marks.replaceChildren(...bins.flatMap((bin, index) => bars(bin, Math.max(LEFT, x((first + index) * 1e6)), x((first + index + 1) * 1e6), y)));
    const whole = bins[Math.floor((store.picture.now_us ?? 0) / 1e6) - 1 - first];
    if (store.world === "live") say(this.note, whole ? `${Math.round(whole.all)} records written in the last whole second` : "");
    else say(this.note, whole ? `${whole.all + whole[1]} records/s, ${inBytes(whole.bytes)}/s acknowledged in the last whole second` : "");
  }
}

// What was written between two looks at a live cluster, evenly over that time.
function spread({ from, at, records }, bins, first) {
  for (let second = Math.floor(from / 1e6); second * 1e6 < at; second++) {
    const within = Math.min(at, (second + 1) * 1e6) - Math.max(from, second * 1e6);
    const bin = bins[second - first];
    if (bin && at > from) bin.all += (records * within) / (at - from);
  }
}

function bars(bin, left, right, y) {
  const width = Math.max(1, Math.min(right, WIDTH - 4) - left - 1);
  return [["acks-all", 0, bin.all], ["acks-1", bin.all, bin.all + bin[1]]].filter(([, low, high]) => high > low)
    .map(([kind, low, high]) => svg("rect", { class: kind, x: left.toFixed(1), width: width.toFixed(1), y: y(high).toFixed(1), height: (y(low) - y(high)).toFixed(1) }));
}

const inBytes = (bytes) => (bytes < 10_000 ? `${bytes} B` : bytes < 10e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

function niceTop(most) {
  for (const top of [4, 10, 20, 40, 100, 200, 400, 1000, 2000, 4000, 10000]) if (most <= top) return top;
  return most;
}
