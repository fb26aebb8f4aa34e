// The page: selection and refresh of views, and login.

import { viewName } from "./address.js";
import { Unauthorised, logIn, userName } from "./api.js";
import { view as analysis } from "./analysis.js";
import { view as clients } from "./clients.js";
import { view as configuration } from "./configuration.js";
import { view as terminal } from "./console.js";
import { view as heavy } from "./heavy.js";
import { view as keys } from "./keys.js";
import { view as overview } from "./overview.js";
import { view as persistence } from "./persistence.js";
import { view as profiler } from "./profiler.js";
import { view as pubsub } from "./pubsub.js";
import { view as replication } from "./replication.js";
import { view as slowlog } from "./slowlog.js";
import { view as users } from "./users.js";

const VIEWS = { overview, keys, analysis, heavy, clients, slowlog, profiler, pubsub, console: terminal, users,
  configuration, persistence, replication };
const AGAIN_MS = 2000;

const main = document.querySelector("#main");
const trouble = document.querySelector("#trouble");
const pause = document.querySelector("#pause");
const login = document.querySelector("#login");
const form = login.querySelector("form");

let current = null;
/** The element of the current view. Each view has a new one, so late replies to a previous view are not shown. */
let place = null;
let timer = 0;
let isPaused = false;
/** When the server stopped answering. */
let lostAt = null;

/** Shows a view, and refreshes it after its period. */
async function show(view) {
  clearTimeout(timer);
  let next = view.period;
  try {
    await view.show(place);
    trouble.hidden = true;
    lostAt = null;
    main.classList.remove("stale");
  } catch (error) {
    if (error instanceof Unauthorised) {
      return;
    }
    lostAt ??= new Date().toLocaleTimeString("en");
    trouble.textContent = `No answer from the server since ${lostAt} (${error.message}). The page shows older data; `
      + "the next attempt follows every two seconds.";
    trouble.hidden = false;
    main.classList.add("stale");
    next = AGAIN_MS;
  }
  // The user may have selected another view meanwhile.
  if (next && current === view && !isPaused && !document.hidden) {
    clearTimeout(timer);
    timer = setTimeout(() => show(view), next);
  }
}

/** Shows the view that the URL names. */
function route() {
  const view = VIEWS[viewName()] ?? overview;
  document.querySelectorAll("nav a").forEach((link) => {
    const isCurrent = VIEWS[link.hash.slice(1)] === view;
    link.toggleAttribute("aria-current", isCurrent);
    if (isCurrent) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "center" });
    }
  });
  document.title = `${view.title} – ember`;
  place = document.createElement("div");
  main.replaceChildren(place);
  document.querySelector("#status").textContent = "";
  current?.leave?.();
  current = view;
  show(view);
}

function showUser() {
  document.querySelector("#user").textContent = userName();
  document.querySelector("#switch").textContent = userName() === "default" ? "Log in" : "Change user";
}

/** Opens the login dialog. */
function askWho(reason) {
  clearTimeout(timer);
  login.querySelector("#login-reason").textContent = reason;
  form.elements.password.value = "";
  if (!login.open) {
    login.showModal();
  }
  (reason.startsWith("WRONGPASS") ? form.elements.password : form.elements.user).focus();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await logIn(form.elements.user.value, form.elements.password.value);
  } catch (error) {
    askWho(error.message);
    return;
  }
  form.elements.password.value = "";
  login.close();
  showUser();
  route();
});

form.elements.cancel.addEventListener("click", () => login.close());

// Any request can cause this event.
document.addEventListener("unauthorised", ({ detail }) => login.open || askWho(detail));

document.querySelector("#switch").addEventListener("click", () => askWho(""));

document.querySelector("#skip").addEventListener("click", () => main.focus());

pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
  if (!isPaused) {
    show(current);
  }
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !isPaused && current) {
    show(current);
  }
});

window.addEventListener("hashchange", route);
showUser();
route();
