// The users of the access control list (ACL): their rules, with changes, and the log of refusals.

import { ReplyError, permitted, run, runAll, userName } from "./api.js";
import { split } from "./console.js";
import { answered, button, bytesOf, dialog, el, refused, renew, table, tell, tile } from "./dom.js";
import { count, span, things } from "./format.js";

/** The number of users whose rules are read, and of entries of the log. */
const USERS_MAX = 200;
const LOG_MAX = 100;

export const view = {
  title: "Users",
  async show(main) {
    if (main.querySelector("#users")) {
      return;
    }
    const names = await answered(main, "Users", () => run(["ACL", "USERS"]));
    if (!names) {
      return;
    }
    const place = el("div", { id: "users", class: "tiles" }, tile("Users", { class: "wide", id: "user-list" },
      el("div", {})), tile("Refusals", { class: "wide", id: "acl-log" }, el("div", {})));
    main.replaceChildren(place);
    await drawUsers(names);
    await drawLog();
  },
};

async function drawUsers(names) {
  const place = document.querySelector("#user-list > div");
  if (!place) {
    return;
  }
  const shown = names.slice(0, USERS_MAX);
  const replies = await runAll(shown.map((name) => ["ACL", "GETUSER", name]));
  const [maySet, mayDelete, maySave, mayRewrite] = await permitted(
    [["ACL", "SETUSER", "x"], ["ACL", "DELUSER", "x"], ["ACL", "SAVE"], ["CONFIG", "REWRITE"]]);
  const rows = shown.map((name, at) => [bytesOf(name), ...rulesOf(replies[at]), el("span", {},
    maySet ? button("Change", () => change(name), { "aria-label": `Change ${name.line}` }) : null, " ",
    // The server refuses to delete the default user.
    mayDelete && name.text !== "default"
      ? button("Delete", () => remove(name), { class: "danger", "aria-label": `Delete ${name.line}` }) : null)]);
  const columns = [["user"], ["state"], ["passwords", "number"], ["commands"], ["keys"], ["channels"], ["selectors"],
    ["", "actions"]];
  const more = names.length > USERS_MAX ? `, the first ${USERS_MAX} of ${names.length}` : "";
  const actions = [maySet ? button("New user", create) : null, maySave || mayRewrite ? button("Write to file", save) : null];
  place.replaceChildren(table(`${things(names.length, "user")}${more}; you are ${userName()}`, columns, rows),
    el("p", { class: "row" }, actions));
}

/** Returns the cells for the rules of a user. Hashes of passwords are not shown. */
function rulesOf(reply) {
  if (!(reply instanceof Map)) {
    return [reply instanceof ReplyError ? reply.message : "deleted", "", "", "", "", ""];
  }
  const flags = reply.get("flags").map((flag) => flag.text ?? flag);
  const text = (name) => el("div", { class: "bytes" }, reply.get(name).line ?? "");
  const passwords = flags.includes("nopass") ? "none needed" : count(reply.get("passwords").length);
  const selectors = reply.get("selectors").map((selector) => `(${["commands", "keys", "channels"]
    .map((name) => selector.get(name).line).filter((rules) => rules !== "").join(" ")})`);
  return [flags.includes("on") ? "on" : "off", passwords, text("commands"), text("keys"), text("channels"),
    el("div", { class: "bytes" }, selectors.join("\n"))];
}

async function again(text) {
  tell(text);
  await drawUsers(await run(["ACL", "USERS"]));
}

const ABOUT_RULES = "For example: on >password ~orders:* &news +@read -@dangerous. Rules are added to those that the user "
  + "has; reset removes them first, and resetpass the passwords.";

/** Adds rules to a user. */
async function set(name, rules) {
  await run(["ACL", "SETUSER", name, ...split(rules)]);
}

function create() {
  const fields = [{ name: "name", label: "Name" }, { name: "rules", label: "Rules", value: "on >" }];
  dialog("New user", fields, "Create it", async ({ name, rules }) => {
    if (name === "") {
      throw new Error("Enter a name.");
    }
    const names = await run(["ACL", "USERS"]);
    if (names.some((known) => known.text === name)) {
      throw new Error("A user with this name already exists.");
    }
    await set(name, rules);
    await again("The user was created.");
  }, { text: el("p", { class: "faint" }, ABOUT_RULES) });
}

function change(name) {
  dialog(`Change ${name.line}`, [{ name: "rules", label: "Rules to add" }], "Change it", async ({ rules }) => {
    await set(name, rules);
    await again("The user was changed.");
  }, { text: el("p", { class: "faint" }, ABOUT_RULES) });
}

function remove(name) {
  dialog("Delete this user?", [], "Delete it", async () => {
    await run(["ACL", "DELUSER", name]);
    await again("The user was deleted; its connections were closed.");
  }, { class: "danger", text: el("p", { class: "bytes" }, name.line) });
}

/** Writes the users to the ACL file; without one, to the configuration file. */
async function save() {
  const [reply] = await runAll([["ACL", "SAVE"]]);
  if (!(reply instanceof ReplyError)) {
    tell("The users were written to the ACL file.");
    return;
  }
  const [rewritten] = await runAll([["CONFIG", "REWRITE"]]);
  tell(rewritten instanceof ReplyError ? `${reply.message} ${rewritten.message}`
    : "The users were written to the configuration file.");
}

/** Shows the log of failed logins and refused commands. */
async function drawLog() {
  const place = document.querySelector("#acl-log > div");
  if (!place) {
    return;
  }
  const [entries] = await runAll([["ACL", "LOG", LOG_MAX]]);
  if (entries instanceof ReplyError) {
    renew(place, refused(entries));
    return;
  }
  const [mayReset] = await permitted([["ACL", "LOG", "RESET"]]);
  const text = (value) => value.line ?? String(value);
  const rows = entries.map((entry) => [count(entry.get("count")), text(entry.get("reason")), text(entry.get("context")),
    el("div", { class: "bytes" }, text(entry.get("object"))), text(entry.get("username")),
    `${span(Number(text(entry.get("age-seconds"))))} ago`,
    el("div", { class: "bytes" }, /(?:^| )addr=(\S+)/.exec(text(entry.get("client-info")))?.[1] ?? "")]);
  const columns = [["times", "number"], ["reason"], ["context"], ["object"], ["user"], ["last"], ["address"]];
  place.replaceChildren(table("Failed logins and refused commands, the newest first", columns, rows, "There were none."),
    el("p", { class: "row" }, button("Refresh", drawLog), mayReset && entries.length > 0 ? button("Empty the log", () =>
      dialog("Empty the log of refusals?", [], "Empty it", async () => {
        await run(["ACL", "LOG", "RESET"]);
        await drawLog();
      }, { class: "danger" }), { class: "danger" }) : null));
}
