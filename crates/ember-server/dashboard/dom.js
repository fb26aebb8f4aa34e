// Elements of the page. Text is never parsed as HTML.

import { ReplyError } from "./api.js";

/** Creates an element. `properties` are attributes; true adds an empty one, false omits it; `on…` are listeners. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== undefined && value !== null) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/**
 * Updates the children of an element to equal `children`. Nodes of the same kind are updated in place, so they keep focus,
 * selection and scroll position, and also their listeners: `children` must have no listeners.
 */
export function renew(element, ...children) {
  const old = [...element.childNodes];
  children.forEach((child, at) => (at < old.length ? patch(old[at], child) : element.append(child)));
  old.slice(children.length).forEach((child) => child.remove());
}

function patch(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
  } else if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) {
      old.data = fresh.data;
    }
  } else {
    [...old.attributes].filter(({ name }) => !fresh.hasAttribute(name)).forEach(({ name }) => old.removeAttribute(name));
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) {
        old.setAttribute(name, value);
      }
    }
    renew(old, ...fresh.childNodes);
  }
}

/** Creates a button whose action may fail: it ignores clicks while the action runs, and shows the error. */
export function button(label, act, properties = {}) {
  const element = el("button", { type: "button", ...properties }, label);
  element.addEventListener("click", async () => {
    // A disabled button would lose the focus.
    if (element.hasAttribute("aria-busy")) {
      return;
    }
    element.setAttribute("aria-busy", "true");
    try {
      await act(element);
    } catch (error) {
      tell(error.message);
    } finally {
      element.removeAttribute("aria-busy");
    }
  });
  return element;
}

/** How long a message is shown: it may cover content. */
const TOLD_MS = 8000;

let forgetting = 0;

/** Shows a message in the status line, which screen readers announce. */
export function tell(text) {
  const status = document.querySelector("#status");
  status.textContent = text;
  clearTimeout(forgetting);
  forgetting = setTimeout(() => (status.textContent = ""), TOLD_MS);
}

/** Creates a table. A column is `[heading]` or `[heading, "number"]`; a cell is text or an element; `none` replaces rows. */
export function table(caption, columns, rows, none = "nothing") {
  const head = el("tr", {}, columns.map(([name, kind]) => el("th", { scope: "col", class: kind }, name)));
  const line = (row) =>
    el("tr", {}, row.map((cell, at) => el("td", { class: columns[at][1] }, typeof cell === "number" ? String(cell) : cell)));
  const body = rows.length > 0
    ? rows.map(line)
    : el("tr", {}, el("td", { colspan: String(columns.length), class: "faint" }, none));
  const whole = el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, body));
  // The keyboard can scroll tables that are wider than the window.
  return el("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" }, whole);
}

/** Creates a list of names and values. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== undefined && value !== null);
  return el("dl", { class: "facts" }, known.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** Creates a section with a heading. */
export function tile(title, properties, ...children) {
  const extra = properties.class ? ` ${properties.class}` : "";
  return el("section", { ...properties, class: `tile${extra}`, "aria-label": title }, el("h3", {}, title), ...children);
}

/** Creates an element that shows bytes in their own font. */
export function bytesOf(value) {
  return el("div", { class: "bytes" }, value.line);
}

/** Creates an element with the error reply of a denied request. */
export function refused(error) {
  const hint = error.message.startsWith("NOPERM")
    ? el("div", { class: "faint" }, "Another user may see it: use Log in, or Change user, at the top.") : null;
  return el("div", { class: "refusal" }, el("div", { class: "refused" }, error.message), hint);
}

/** Returns the result of `question`. After an error reply, shows it in `place`, in a tile if there is a title. */
export async function answered(place, title, question) {
  try {
    return await question();
  } catch (error) {
    if (!(error instanceof ReplyError)) {
      throw error;
    }
    place.replaceChildren(title ? tile(title, {}, refused(error)) : refused(error));
    return undefined;
  }
}

/**
 * Opens a dialog. A field is `{name, label, value, kind}` with the kind "text", "password", "lines" or a list of choices;
 * without fields the dialog asks for a confirmation. `act` receives the values by name. The dialog closes when `act`
 * succeeds, and shows its error otherwise.
 */
export function dialog(title, fields, verb, act, properties = {}) {
  const reason = el("p", { class: "refused", role: "alert" });
  const inputs = fields.map((field) => {
    const { name, label, value = "", kind = "text" } = field;
    const shared = { name, autocapitalize: "off", autocomplete: "off", spellcheck: "false" };
    let input;
    if (Array.isArray(kind)) {
      input = el("select", { name }, kind.map((choice) => el("option", {}, choice)));
    } else {
      input = kind === "lines" ? el("textarea", { ...shared, rows: "8" }) : el("input", { ...shared, type: kind });
    }
    if (!Array.isArray(kind) || kind.includes(value)) {
      input.value = value;
    }
    return { ...field, input, row: el("label", {}, label, " ", input) };
  });
  const submit = el("button", { type: "submit", class: properties.class }, verb);
  const cancel = el("button", { type: "button" }, "Cancel");
  const form = el("form", { method: "dialog" }, el("h2", {}, title), properties.text ?? null, reason,
    inputs.map(({ row }) => row), el("p", { class: "row" }, submit, cancel));
  const box = el("dialog", { "aria-label": title }, form);
  const before = document.activeElement;
  cancel.addEventListener("click", () => box.close());
  box.addEventListener("close", () => {
    box.remove();
    // The action may have removed the button that opened the dialog.
    const place = before?.isConnected && before !== document.body ? before : document.querySelector("#key h2, #main");
    // Chromium has restored the focus, but a field accepts input only after it is focused again.
    place?.blur();
    place?.focus();
  });
  const refresh = () => {
    const values = Object.fromEntries(inputs.map(({ name, input }) => [name, input.value]));
    inputs.forEach(({ row, shows }) => (row.hidden = shows ? !shows(values) : false));
    return values;
  };
  form.addEventListener("input", refresh);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      await act(refresh());
      box.close();
    } catch (error) {
      reason.textContent = error.message;
    } finally {
      submit.disabled = false;
    }
  });
  refresh();
  document.body.append(box);
  box.showModal();
  return box;
}
