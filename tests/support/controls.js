// In each page, before its own script: tells which controls can be seen and which are used.
(() => {
  const KINDS = "a[href], button, input, select, textarea, summary, [role=button], [role=tab]";
  const FILLED = "input, select, textarea";
  const KEYS = [" ", "ArrowRight", "ArrowLeft", "?", "Escape", "1", "k"];
  const SPEED = ["+", "-"];
  const EVERY_MS = 1000;

  // Whatever else does something when it is clicked.
  const acting = new WeakSet();
  const listen = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (type, ...rest) {
    if (type === "click" && this instanceof Element) acting.add(this);
    return listen.call(this, type, ...rest);
  };
  const isControl = (node) => acting.has(node) || node.matches(KINDS);

  const told = new Set();
  const tell = (did, name) => {
    const world = document.body?.dataset.world;
    if (!world) return;
    const line = `control ${did} ${world === "live" ? "live" : "simulated"}: ${name}`;
    if (!told.has(line)) console.debug(line);
    told.add(line);
  };

  // Names

  const plain = (text) => text.trim().replace(/\s+/g, " ").replace(/\d[\d.,:]*/g, "N")
    .replace(/'[^']*'/g, "…").replace(/ (for|of) \S*-N$/, "").replace(/^\S+(?=, new value)/, "…");
  const place = (node) => {
    if (node.closest("dialog")) return node.id === "confirm" ? plain(node.closest("dialog").querySelector("h2").textContent) : "dialog";
    const desk = node.closest("#desk");
    return desk ? desk.getAttribute("aria-labelledby").replace("tab-", "") : node.parentElement.closest("[id]")?.id ?? "page";
  };
  const what = (node) => {
    if (node instanceof SVGElement) return node.classList[0];
    if (node instanceof HTMLCanvasElement) return "strip";
    if (node.id && !/\d/.test(node.id)) return node.id;
    if (node.dataset.key) return node.dataset.key.replace(/^(topic|group|txn|broker|partition|set|stop)-.*/, "$1-…");
    if (node.matches(".text, .when")) return `(${node.className})`;
    if (node.closest("fieldset")) return `one of ${node.closest("fieldset").querySelector("legend").textContent}`;
    const label = node.labels?.[0];
    const text = node.getAttribute("aria-label") ?? (label ? (label.querySelector("span") ?? label).textContent : node.textContent);
    return plain(text) || node.localName;
  };
  const name = (node) => `${place(node)} / ${what(node)}`;

  // Offered

  const isSeen = (node) => node.checkVisibility() && !node.disabled && node.getClientRects().length > 0;
  const look = () => {
    for (const node of document.querySelectorAll("body *")) if (isControl(node) && isSeen(node)) tell("offers", name(node));
    const map = document.querySelector("#map svg");
    if (!map || !isSeen(map) || !window.cotidal) return;
    if (cotidal.can("slow")) ["broker", "link"].forEach((each) => tell("offers", `drag a ${each}`));
    if (cotidal.can("cut")) tell("offers", "drag across links");
    const keys = cotidal.store.world === "live" ? KEYS : [...KEYS, ...SPEED];
    for (const key of keys) tell("offers", `key "${key}"`);
  };
  setInterval(look, EVERY_MS);

  // Used

  const use = (event) => {
    let node = event.target;
    while (node && !isControl(node)) node = node.parentElement;
    if (!node || node.matches(FILLED) !== (event.type === "change" || event.type === "input")) return;
    look();
    tell("used", name(node));
  };
  for (const type of ["click", "change", "input"]) listen.call(window, type, use, true);
  listen.call(window, "keydown", (event) => {
    const { key, target } = event;
    if (key === "Enter" && target.matches("[role=button]")) use(event);
    if ([...KEYS, ...SPEED].includes(/\d/.test(key) ? "1" : key) && !target.closest(`${FILLED}, dialog`)) {
      look();
      tell("used", `key "${/\d/.test(key) ? "1" : key}"`);
    }
  }, true);
  let from = null;
  listen.call(window, "pointerdown", (event) => {
    from = event.target.closest("#map svg") && { x: event.clientX, y: event.clientY, what: event.target.closest(".broker, .link")?.classList[0] };
  }, true);
  listen.call(window, "pointerup", (event) => {
    if (from && Math.hypot(event.clientX - from.x, event.clientY - from.y) > 8) tell("used", from.what ? `drag a ${from.what}` : "drag across links");
    from = null;
  }, true);
})()
