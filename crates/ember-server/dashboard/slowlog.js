// The slow log.

import { permitted, run } from "./api.js";
import { answered, dialog, el, renew, table, tell, tile } from "./dom.js";
import { micros, moment } from "./format.js";

const PERIOD_MS = 3000;
const ENTRIES_MAX = 128;

export const view = {
  title: "Slow log",
  period: PERIOD_MS,
  async show(main) {
    const entries = await answered(main, "Slow log", () => run(["SLOWLOG", "GET", ENTRIES_MAX]));
    if (!entries) {
      return;
    }
    const [mayReset] = await permitted([["SLOWLOG", "RESET"]]);
    const rows = entries.map(([id, time, duration, words, address, name]) => [
      String(id),
      moment(time),
      micros(duration),
      el("div", { class: "bytes" }, words.map((word) => word.line).join(" ")),
      address.line,
      name.line,
    ]);
    const columns = [["number", "number"], ["when", "when"], ["took", "number"], ["command"], ["client"], ["name"]];
    const reset = el("button", { type: "button", class: "danger", id: "empty" }, "Empty the log");
    main.onclick ??= ({ target }) => target.id === "empty" && confirmReset(main);
    renew(main, tile("Slow log", {}, mayReset ? el("p", { class: "row" }, reset) : null,
      table("Commands that took longer than slowlog-log-slower-than, the newest first", columns, rows,
        "No command took that long.")));
  },
};

function confirmReset(main) {
  dialog("Empty the slow log?", [], "Empty it", async () => {
    await run(["SLOWLOG", "RESET"]);
    tell("The slow log is empty.");
    await view.show(main);
  }, { class: "danger" });
}
