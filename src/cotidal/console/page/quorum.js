// The quorum of controllers: who leads in which term, whom each voted for, how far each has the metadata.

import { el, pill, say, show, Keyed } from "./dom.js";

const HEADS = ["Node", "Role", "Term", "Voted for", "Metadata to", "Committed"];
const KINDS = { leader: "control", candidate: "warn", prospective: "warn", down: "bad" };
const ASKING = ["candidate", "prospective"];

export class QuorumPanel {
  constructor(parent) {
    this.root = parent;
    this.verdict = el("p", { class: "note" });
    const body = el("tbody");
    parent.replaceChildren(el("h2", { id: "quorum-title" }, "Controller quorum"), this.verdict,
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "quorum-title" },
        el("table", {}, el("thead", {}, el("tr", {}, HEADS.map((head) => el("th", { scope: "col" }, head)))), body)));
    this.keyed = new Keyed(body, () => el("tr", {}, el("th", { scope: "row" }), ...HEADS.slice(1).map(() => el("td"))), drawRow);
  }

  draw(store) {
    const members = membersOf(store.picture);
    show(this.root, members.length > 0);
    if (!members.length) return;
    say(this.verdict, told(members));
    this.keyed.draw(members);
  }
}

// Of brokers and controllers those that take part, or are down and may have; nobody where no world tells of a quorum.
export function membersOf({ brokers = {}, controllers = {} }) {
  const nodes = Object.entries({ ...brokers, ...controllers });
  return nodes.some(([, node]) => node.quorum) ? nodes.filter(([, node]) => node.quorum || node.state === "down") : [];
}

// What a node does in an election that is under way.
export function ballot({ quorum }, { brokers = {}, controllers = {} }) {
  if (quorum?.role === "candidate") return `asks for votes, term ${quorum.epoch}`;
  if (quorum?.role === "prospective") return "asks if it could win";
  const asks = (brokers[quorum?.voted] ?? controllers[quorum?.voted])?.quorum;
  return asks?.role === "candidate" && asks.epoch === quorum.epoch ? `votes for ${quorum.voted}` : "";
}

function told(members) {
  const led = members.filter(([, node]) => node.quorum?.role === "leader").sort(([, one], [, other]) => other.quorum.epoch - one.quorum.epoch)[0];
  const asks = members.filter(([, { quorum }]) => ASKING.includes(quorum?.role) && quorum.epoch > (led?.[1].quorum.epoch ?? -1));
  const sentences = [led ? `Node ${led[0]} leads in term ${led[1].quorum.epoch}.` : "Nobody leads: nothing can be decided."];
  for (const [id, { quorum }] of asks) sentences.push(`Node ${id} ${quorum.role === "candidate" ? `asks for votes in term ${quorum.epoch}` : "asks if it could win"}.`);
  return sentences.join(" ");
}

function drawRow(row, id, { quorum }) {
  const role = quorum?.role ?? "down";
  say(row.children[0], id);
  if (row.dataset.role !== role) {
    row.dataset.role = role;
    row.children[1].replaceChildren(pill(role, KINDS[role] ?? "plain"));
  }
  const values = quorum ? [quorum.epoch, quorum.voted === undefined ? "–" : `node ${quorum.voted}`, quorum.end, quorum.high_watermark] : ["–", "–", "–", "–"];
  values.forEach((value, index) => say(row.children[index + 2], String(value)));
}
