// The profiler: the commands of all clients as they run (MONITOR).

import { ReplyError, permitted, userName } from "./api.js";
import { button, el, refused, renew, table, tile } from "./dom.js";
import { Stream } from "./streams.js";

/** The number of rows that are shown, the newest first, and the number of characters of each. */
const SHOWN_MAX = 200;
const LINE_MAX = 300;

let filter = "";
const stream = new Stream(draw);

export const view = {
  title: "Profiler",
  async show(main) {
    if (main.querySelector("#profiler")) {
      return;
    }
    stream.belongsTo(userName());
    const [may] = await permitted([["MONITOR"]]);
    const input = el("input", { type: "search", autocomplete: "off", oninput: () => {
      filter = input.value;
      draw();
    } });
    input.value = filter;
    const start = button("Start", () => {
      stream.open(["MONITOR"]).catch((error) => stopped(error));
    }, { id: "start-stream" });
    const about = el("p", { class: "faint" },
      "Shows the commands of all clients, with MONITOR. While it runs, each command takes the server more time. It stops ",
      "after ten minutes or 100,000 commands, and when you leave this view.");
    main.replaceChildren(el("div", { id: "profiler" }, tile("Profiler", {}, about,
      may ? el("p", { class: "row" }, start, stream.buttons(),
        el("label", { class: "inline" }, "Filter ", input)) : refused(new ReplyError(
        `NOPERM User ${userName()} has no permissions to run the 'monitor' command`)),
      el("div", { id: "rows" }))));
    draw();
  },
  leave() {
    stream.stop();
  },
};

function stopped(error) {
  stream.end = error.message;
  draw();
}

/** Splits a line of MONITOR: `1764212345.123456 [0 127.0.0.1:4000] "GET" "a"`. */
function parts(line) {
  const [whole, time, database, client, call] = /^(\d+\.\d+) \[(\d+) (.*?)\] (.*)$/s.exec(line) ?? [line, "", "", "", line];
  return whole === call ? { time: "", database, client, call } : { time: clock(Number(time)), database, client, call };
}

/** Formats a Unix time as the time of day with milliseconds. */
function clock(seconds) {
  const milliseconds = String(Math.floor((seconds % 1) * 1000)).padStart(3, "0");
  return `${new Date(seconds * 1000).toLocaleTimeString("en", { hour12: false })}.${milliseconds}`;
}

function draw() {
  const place = document.querySelector("#profiler #rows");
  if (!place) {
    return;
  }
  document.querySelector("#start-stream")?.setAttribute("aria-pressed", String(stream.isOpen));
  document.querySelector("#stop-stream")?.setAttribute("aria-disabled", String(!stream.isOpen));
  const wanted = filter.toLowerCase();
  const found = stream.rows.filter((line) => line.toLowerCase().includes(wanted));
  const rows = found.slice(-SHOWN_MAX).reverse().map((line) => {
    const { time, database, client, call } = parts(line);
    const text = call.length > LINE_MAX ? `${call.slice(0, LINE_MAX)}…` : call;
    return [time, el("div", { class: "bytes" }, text), database, client];
  });
  const more = found.length > SHOWN_MAX ? `, the newest ${SHOWN_MAX} of ${found.length}` : "";
  renew(place, stream.summary("command"), table(`Commands, the newest first${more}`,
    [["time", "when"], ["command"], ["db", "number"], ["client"]], rows,
    stream.isOpen ? "No command yet." : "Start shows commands here."));
}
