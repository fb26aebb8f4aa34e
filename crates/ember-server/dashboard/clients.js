// The connected clients.

import { permitted, run } from "./api.js";
import { answered, dialog, el, renew, table, tell, tile } from "./dom.js";
import { size, span, things } from "./format.js";

const PERIOD_MS = 3000;
const SHOWN_MAX = 500;

let filter = "";

export const view = {
  title: "Clients",
  period: PERIOD_MS,
  async show(main) {
    const place = main.querySelector("#clients-list") ?? frame(main);
    const list = await answered(place, null, () => run(["CLIENT", "LIST"]));
    if (!list) {
      return;
    }
    const [mayKill] = await permitted([["CLIENT", "KILL", "ID", "1"]]);
    renew(place, clientTable(list.text, mayKill));
  },
};

function frame(main) {
  const search = () => {
    filter = input.value;
    view.show(main).catch((error) => tell(error.message));
  };
  const input = el("input", { type: "search", autocomplete: "off", oninput: search });
  input.value = filter;
  // One listener for all buttons: an update of the list can reuse a button for another client.
  const kill = ({ target }) => target.dataset.client && confirmKill(main, target.dataset);
  const place = el("div", { id: "clients-list", onclick: kill });
  main.replaceChildren(tile("Clients", {},
    el("p", { class: "row" }, el("label", { class: "inline" }, "Filter ", input)), place));
  return place;
}

function clientTable(text, mayKill) {
  const all = text.split("\n").filter((line) => line !== "");
  const lines = all.filter((line) => line.toLowerCase().includes(filter.toLowerCase()));
  const rows = lines.slice(0, SHOWN_MAX).map((line) => {
    const of = Object.fromEntries(line.split(" ").map((field) => {
      const equals = field.indexOf("=");
      return [field.slice(0, equals), field.slice(equals + 1)];
    }));
    const kill = mayKill
      ? el("button", { type: "button", class: "danger", "data-client": of.id, "data-about": `${of.addr} ${of.name}`,
        "aria-label": `Close client ${of.id}` }, "Close")
      : "";
    return [of.id, of.addr, of.name, of.user, of.db, of.cmd, span(Number(of.age)), span(Number(of.idle)), of.flags,
      size(Number(of["tot-mem"])), size(Number(of.obl)), kill];
  });
  const columns = [["id", "number"], ["address"], ["name"], ["user"], ["db", "number"], ["last command"],
    ["age", "number"], ["idle", "number"], ["flags"], ["memory", "number"], ["unsent", "number"], ["", "actions"]];
  const more = lines.length > SHOWN_MAX ? `, the first ${SHOWN_MAX} of ${lines.length} that match` : "";
  return table(`${things(all.length, "client")}${more}`, columns, rows, "No client matches the filter.");
}

function confirmKill(main, { client, about }) {
  dialog(`Close the connection of client ${client}?`, [], "Close it", async () => {
    const closed = await run(["CLIENT", "KILL", "ID", client]);
    tell(closed === 0 ? `Client ${client} is already disconnected.` : `Client ${client} was closed.`);
    await view.show(main);
  }, { class: "danger", text: el("p", {}, about) });
}
