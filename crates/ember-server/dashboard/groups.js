// The consumer groups of a stream: consumers and pending entries, with their acknowledgement.

import { ReplyError, permitted, run, runAll, unless } from "./api.js";
import { typed } from "./bytes.js";
import { button, bytesOf, dialog, el, table, tell } from "./dom.js";
import { count, span, things } from "./format.js";

/** The number of pending entries that are shown at a time, and of consumers. */
const PENDING_AT_A_TIME = 100;
const CONSUMERS_MAX = 200;

/** Shows the consumer groups of a stream. */
export async function groupsOf(key, database) {
  const place = el("div", { id: "groups" });
  await draw(place, { key, database });
  return place;
}

/** Draws the groups of a stream; `opened` is the group, and perhaps the consumer, whose details are shown. */
async function draw(place, stream, opened = null) {
  const { key, database } = stream;
  const [found] = await runAll([["XINFO", "GROUPS", key]], database);
  const [mayCreate, mayDestroy, maySet] = await permitted([["XGROUP", "CREATE", key, "g", "0"],
    ["XGROUP", "DESTROY", key, "g"], ["XGROUP", "SETID", key, "g", "0"]]);
  const more = el("div", { id: "group" });
  const again = (group, consumer) => draw(place, stream, group ? { group, consumer } : null);
  const create = mayCreate ? el("p", { class: "row" }, button("New group", () => newGroup(stream, again))) : null;
  if (!Array.isArray(found) || found.length === 0) {
    place.replaceChildren(...[el("p", { class: "faint" }, "No consumer groups."), create].filter(Boolean));
    return;
  }
  const rows = found.map((reply) => {
    const group = reply.get("name");
    return [
      bytesOf(group),
      count(reply.get("consumers")),
      count(reply.get("pending")),
      reply.get("last-delivered-id").text,
      reply.get("lag") === null ? "?" : count(reply.get("lag")),
      el("span", {},
        button("Open", () => open(more, { ...stream, group, again }), { "aria-label": `Open group ${group.line}` }), " ",
        maySet ? button("Set ID", () => setId(stream, group, again), { "aria-label": `Set ID of group ${group.line}` })
          : null, " ",
        mayDestroy ? button("Delete", () => destroy(stream, group, again),
          { class: "danger", "aria-label": `Delete group ${group.line}` }) : null),
    ];
  });
  const columns = [["group"], ["consumers", "number"], ["pending", "number"], ["delivered up to"], ["lag", "number"],
    ["", "actions"]];
  if (opened) {
    await open(more, { ...stream, ...opened, again });
  }
  place.replaceChildren(...[table("Consumer groups", columns, rows), create, more].filter(Boolean));
}

function newGroup({ key, database }, again) {
  const fields = [{ name: "name", label: "Name" },
    { name: "from", label: "Entries", kind: ["new ones only", "all of the stream"] }];
  dialog("New group", fields, "Create it", async ({ name, from }) => {
    await run(["XGROUP", "CREATE", key, typed(name), from === "new ones only" ? "$" : "0"], database);
    await again();
    tell("The group was created.");
  });
}

function setId({ key, database }, group, again) {
  const fields = [{ name: "id", label: "ID of the last delivered entry; 0 for none, $ for the newest", value: "$" }];
  dialog("Set the position of the group", fields, "Set it", async ({ id }) => {
    await run(["XGROUP", "SETID", key, group, id], database);
    await again();
    tell("The position was set.");
  });
}

function destroy({ key, database }, group, again) {
  dialog("Delete this group?", [], "Delete it", async () => {
    await run(["XGROUP", "DESTROY", key, group], database);
    await again();
    tell("The group was deleted.");
  }, { class: "danger", text: el("p", { class: "bytes" }, group.line) });
}

/** Shows the consumers and the pending entries of a group; of one consumer, if there is one. */
async function open(place, opened) {
  const { key, database, group, consumer } = opened;
  const consumers = unless((await runAll([["XINFO", "CONSUMERS", key, group]], database))[0]);
  const [mayDelete] = await permitted([["XGROUP", "DELCONSUMER", key, group, "c"]]);
  const rows = consumers.slice(0, CONSUMERS_MAX).map((reply) => {
    const name = reply.get("name");
    const inactive = reply.get("inactive");
    return [
      bytesOf(name),
      count(reply.get("pending")),
      `${span(reply.get("idle") / 1000)} ago`,
      inactive < 0 ? "never" : `${span(inactive / 1000)} ago`,
      el("span", {},
        button("Pending", () => open(place, { ...opened, consumer: name }), { "aria-label": `Pending of ${name.line}` }),
        " ",
        mayDelete ? button("Delete", () => remove(opened, name), { class: "danger", "aria-label": `Delete ${name.line}` })
          : null),
    ];
  });
  const more = consumers.length > CONSUMERS_MAX ? `, the first ${CONSUMERS_MAX} of ${count(consumers.length)}` : "";
  const columns = [["consumer"], ["pending", "number"], ["last seen"], ["last read"], ["", "actions"]];
  const list = table(`Consumers of ${group.line}${more}`, columns, rows, "There are no consumers.");
  const pending = el("div", { id: "pending" });
  const whole = consumer ? el("p", { class: "row" }, button("Pending of all consumers",
    () => open(place, { ...opened, consumer: undefined }))) : null;
  await addPending(pending, opened, [], "-");
  place.replaceChildren(...[list, whole, pending].filter(Boolean));
}

function remove({ key, database, group, again }, consumer) {
  dialog("Delete this consumer?", [], "Delete it", async () => {
    const lost = await run(["XGROUP", "DELCONSUMER", key, group, consumer], database);
    await again(group);
    tell(`The consumer was deleted, with ${things(lost, "pending entry", "pending entries")}.`);
  }, { class: "danger", text: el("div", {}, el("p", { class: "bytes" }, consumer.line),
    el("p", { class: "faint" }, "Its pending entries are no longer pending for any consumer.")) });
}

/** Adds pending entries from an ID on to `known`, and shows all of them. */
async function addPending(place, opened, known, from) {
  const { key, database, group, consumer, again } = opened;
  const range = ["XPENDING", key, group, from, "+", PENDING_AT_A_TIME, ...(consumer ? [consumer] : [])];
  const [found] = await runAll([range], database);
  if (found instanceof ReplyError) {
    throw found;
  }
  const entries = [...known, ...found];
  const [mayAck, mayClaim] = await permitted([["XACK", key, group, "0-1"], ["XCLAIM", key, group, "c", 0, "0-1"]]);
  const refresh = () => again(group, consumer);
  const rows = entries.map(([id, owner, idle, deliveries]) => [
    id.text,
    bytesOf(owner),
    `${span(idle / 1000)} ago`,
    count(deliveries),
    el("span", {},
      mayAck ? button("Ack", () => acknowledge(opened, [id], refresh), { "aria-label": `Ack ${id.text}` }) : null, " ",
      mayClaim ? button("Claim", () => claim(opened, id, refresh), { "aria-label": `Claim ${id.text}` }) : null),
  ]);
  const columns = [["entry"], ["consumer"], ["delivered", "number"], ["deliveries", "number"], ["", "actions"]];
  const last = found.length === PENDING_AT_A_TIME ? found.at(-1)[0].text : null;
  const of = consumer ? consumer.line : group.line;
  const all = mayAck && entries.length > 1
    ? button(`Ack all ${things(entries.length, "shown entry", "shown entries")}`, () => dialog("Acknowledge them?", [],
      "Acknowledge", () => acknowledge(opened, entries.map(([id]) => id), refresh))) : null;
  place.replaceChildren(table(`Pending entries of ${of}`, columns, rows, "There are none."),
    el("p", { class: "row" }, last ? button("More", () => addPending(place, opened, entries, `(${last}`)) : null, all));
}

async function acknowledge({ key, database, group }, ids, refresh) {
  const number = await run(["XACK", key, group, ...ids], database);
  await refresh();
  tell(`${things(number, "entry was", "entries were")} acknowledged.`);
}

function claim({ key, database, group }, id, refresh) {
  dialog(`Claim ${id.text}`, [{ name: "consumer", label: "For the consumer" }], "Claim it", async ({ consumer }) => {
    const claimed = await run(["XCLAIM", key, group, typed(consumer), 0, id, "JUSTID"], database);
    await refresh();
    tell(claimed.length === 0 ? "The entry is no longer pending." : "The entry was claimed.");
  });
}
