// The quorum that decides: who leads it, and how far each voter and observer is behind.

import { el, pill } from "../dom.js";
import { Room, ago, card, count, table } from "./parts.js";

export class QuorumView {
  constructor(desk) {
    this.desk = desk;
    this.title = "Quorum";
    this.key = "quorum";
    this.everyMs = 2000;
    this.room = new Room();
    this.root = this.room.root;
  }

  async load() {
    const told = await this.desk.ask("quorum");
    this.room.draw(told, () => this.make(told));
  }

  make(told) {
    const row = (member, role) => {
      const leads = member.node === told.leader;
      const since = (wall) => (leads || wall < 0 ? "–" : ago(told.now_ms - wall));
      return [String(member.node), pill(leads ? "leader" : role, leads ? "leader" : "none"), count(member.end_offset), count(member.lag), since(member.last_fetch_ms), since(member.last_caught_up_ms)];
    };
    return [card("Metadata quorum", el("p", { class: `verdict ${told.leader >= 0 ? "good" : "bad"}` }, told.leader >= 0 ? `Node ${told.leader} leads in epoch ${told.leader_epoch}; committed below offset ${count(told.high_watermark)}.` : "Nobody leads: nothing can be decided."),
      table("Members", ["Node", "Role", "End", "Behind, records", "Last fetch", "Caught up"], [...told.voters.map((each) => row(each, "voter")), ...told.observers.map((each) => row(each, "observer"))]))];
  }
}
