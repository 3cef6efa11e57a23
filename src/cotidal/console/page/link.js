// The world, wherever it is: behind a WebSocket, or in a worker of this very browser.
// Both give: say(command), and call back with messages and with "open" or "gone".

const AGAIN_MS = 1000;
const GONE = "the server is gone";

export class SocketLink {
  constructor(on) {
    this.on = on;
    this.asks = new Map();
    this.last = 0;
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const token = new URLSearchParams(location.search).get("token");
    const query = token ? `?token=${encodeURIComponent(token)}` : "";
    const base = location.pathname.replace(/[^/]*$/, "");
    this.socket = new WebSocket(`${scheme}//${location.host}${base}world${query}`);
    this.socket.onopen = () => this.on.open();
    this.socket.onmessage = (event) => receive(this, JSON.parse(event.data));
    this.socket.onclose = () => {
      drop(this);
      this.on.gone();
      setTimeout(() => this.connect(), AGAIN_MS);
    };
  }

  // Whether it could be said.
  post(command) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(command));
    return true;
  }

  say(command) { this.post(command); }

  ask(command) { return asked(this, command); }
}

export class WorkerLink {
  constructor(on, url) {
    this.on = on;
    this.asks = new Map();
    this.last = 0;
    this.worker = new Worker(url, { type: "module" });
    this.worker.onmessage = (event) => {
      const message = event.data;
      if (message.tell === "loading") on.loading(message.text);
      else if (message.tell === "loaded") on.open();
      else receive(this, message);
    };
    this.worker.onerror = (event) => on.loading(`The simulator could not be started: ${event.message}`);
  }

  post(command) {
    this.worker.postMessage(JSON.stringify(command));
    return true;
  }

  say(command) { this.post(command); }

  ask(command) { return asked(this, command); }
}

// A question is answered or refused, in a promise.
function asked(link, command) {
  const ask = ++link.last;
  return new Promise((done, refused) => {
    if (link.post({ ...command, ask })) link.asks.set(ask, { done, refused });
    else refused(new Error(GONE));
  });
}

function receive(link, message) {
  const waiting = link.asks.get(message.ask);
  if (waiting && (message.tell === "answer" || message.tell === "refused")) {
    link.asks.delete(message.ask);
    if (message.tell === "answer") waiting.done(message);
    else waiting.refused(new Error(message.sentence));
    return;
  }
  link.on.message(message);
}

function drop(link) {
  for (const waiting of link.asks.values()) waiting.refused(new Error(GONE));
  link.asks.clear();
}
