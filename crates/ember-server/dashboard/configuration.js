// The configuration: every parameter with its value, its default and its description.

import { configuration, permitted, run } from "./api.js";
import { answered, button, dialog, el, tell, tile } from "./dom.js";
import { size, things } from "./format.js";

const state = { filter: "", onlyChanged: false };

export const view = {
  title: "Configuration",
  async show(main) {
    const parameters = await answered(main, "Configuration", configuration);
    if (!parameters) {
      return;
    }
    const [maySet, mayRewrite] = await permitted([["CONFIG", "SET", "maxmemory", "0"], ["CONFIG", "REWRITE"]]);
    const again = () => view.show(main);
    const list = el("ul", { class: "parameters" });
    const summary = el("p", { id: "shown", class: "faint", role: "status" });
    const draw = () => {
      const wanted = state.filter.toLowerCase();
      const found = parameters.filter(({ name, about, is_changed: isChanged }) => (isChanged || !state.onlyChanged)
        && (name.includes(wanted) || about.toLowerCase().includes(wanted)));
      const changed = parameters.filter(({ is_changed: isChanged }) => isChanged).length;
      summary.textContent = `${things(found.length, "parameter")} shown; ${changed} of ${parameters.length} `
        + "are not at their default";
      const none = el("li", { class: "faint" }, state.onlyChanged && wanted === ""
        ? "All parameters are at their defaults." : "No parameter has this in its name or its description.");
      list.replaceChildren(...(found.length > 0 ? found.map((one) => item(one, maySet, again)) : [none]));
    };
    const filter = el("input", { type: "search", name: "filter", autocomplete: "off", autocapitalize: "off",
      spellcheck: "false", oninput: ({ target }) => {
        state.filter = target.value;
        draw();
      } });
    filter.value = state.filter;
    const only = el("input", { type: "checkbox", name: "changed", onchange: ({ target }) => {
      state.onlyChanged = target.checked;
      draw();
    } });
    only.checked = state.onlyChanged;
    const rewrite = button("Write to the file", () => confirmRewrite());
    main.replaceChildren(tile("Configuration", { id: "configuration" },
      el("p", { class: "row" }, el("label", { class: "inline" }, "Filter ", filter),
        el("label", { class: "inline" }, only, " only changed parameters"), button("Refresh", again),
        maySet && mayRewrite ? rewrite : null),
      maySet ? null : el("p", { class: "faint" }, "Read only: this user may not run CONFIG SET."),
      summary, list));
    draw();
  },
};

function item(parameter, maySet, again) {
  const { name, about, default: standard, is_changed: isChanged, is_mutable: isMutable } = parameter;
  const isSecret = parameter.is_set !== undefined;
  const value = isSecret ? el("span", { class: "faint" }, parameter.is_set ? "set, not shown" : "not set")
    : shownValue(parameter, parameter.value);
  const marks = [
    isChanged ? el("span", { class: "mark changed" }, "changed") : null,
    isMutable ? null : el("span", { class: "mark" }, "fixed at startup"),
    parameter.has_effect ? null : el("span", { class: "mark" }, "no effect"),
  ].filter(Boolean).flatMap((mark) => [" ", mark]);
  const before = isChanged && !isSecret
    ? el("p", { class: "faint" }, "Default: ", shownValue(parameter, standard)) : null;
  const change = maySet && isMutable
    ? button("Change", () => ask(parameter, isSecret, again), { "aria-label": `Change ${name}` }) : null;
  return el("li", { "data-parameter": name },
    el("div", {}, el("span", { class: "bytes name" }, name), marks),
    el("div", {}, value, before),
    el("div", { class: "faint" }, about),
    el("div", { class: "actions" }, change));
}

/** Shows a value as CONFIG GET returns it; memory sizes from 1 KiB also with a unit. */
function shownValue({ shape }, value) {
  if (value === "") {
    return el("span", { class: "faint" }, "empty");
  }
  const isLarge = shape.startsWith("a memory size") && Number(value) >= 1024;
  return el("span", { class: "bytes" }, isLarge ? `${value} (${size(Number(value))})` : value);
}

function ask(parameter, isSecret, again) {
  const { name, choices, shape, about } = parameter;
  const kind = choices.length > 0 ? choices : isSecret ? "password" : "text";
  const field = { name: "value", label: `Value (${shape})`, value: isSecret ? "" : parameter.value, kind };
  dialog(`Change ${name}`, [field], "Set it", async ({ value }) => {
    await run(["CONFIG", "SET", name, value]);
    await again();
    tell(`${name} was changed. The change is lost at a restart, unless it is written to the file.`);
  }, { text: el("p", { class: "faint" }, about) });
}

function confirmRewrite() {
  dialog("Write the configuration to its file?", [], "Write it", async () => {
    await run(["CONFIG", "REWRITE"]);
    tell("The configuration file is up to date.");
  }, { text: el("p", { class: "faint" }, "CONFIG REWRITE: the changes persist after a restart.") });
}
