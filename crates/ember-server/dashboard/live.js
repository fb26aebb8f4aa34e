// Live display of a key: the server sends an event for each change while the key is shown.

import { events } from "./api.js";
import { button, tell } from "./dom.js";

/** The delay before a lost event stream is requested again. */
const AGAIN_MS = 1000;

/** The followed key: its name and database, the function that refreshes it, and the controller that ends its stream. */
let followed = null;

/** Stops following unless the followed key is this one. */
export function followOnly(key, database) {
  if (followed && !(followed.database === database && followed.key.equals(key))) {
    stop();
  }
}

function stop() {
  followed?.ending.abort();
  followed = null;
}

/**
 * Creates a button that starts and stops live updates: while they are on, `again` is called after each change of the key.
 * `place` is the element that shows the key. To preserve unsaved input there, `again` receives a function that returns,
 * once the new data have arrived, whether to keep the current content.
 */
export function liveButton(place, key, database, again) {
  const isLive = () => followed !== null;
  if (followed) {
    followed.again = again;
  }
  return button("Live", (element) => {
    if (isLive()) {
      stop();
      tell("The key is no longer updated.");
    } else {
      followed = { key, database, again, ending: new AbortController() };
      follow(place, followed).catch((error) => tell(error.message));
      tell("The key is updated as it changes.");
    }
    element.setAttribute("aria-pressed", String(isLive()));
  }, { "aria-pressed": String(isLive()), id: "live" });
}

async function follow(place, mine) {
  const { key, database, ending: { signal } } = mine;
  const isWanted = () => followed === mine && place.isConnected;
  while (isWanted()) {
    try {
      // The server sends the first event when it starts to watch the key, so no earlier change is missed.
      for await (const _ of events("live", { database, commands: [["PEXPIRETIME", key]] }, signal)) {
        if (!isWanted()) {
          break;
        }
        await changed(place, mine);
      }
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      if (!error.isPassing) {
        stop();
        document.querySelector("#live")?.setAttribute("aria-pressed", "false");
        throw error;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
  if (followed === mine) {
    stop();
  }
}

async function changed(place, mine) {
  const isKept = () => {
    const area = place.querySelector("#content textarea");
    return document.querySelector("dialog[open]") !== null || (area !== null && area.value !== area.defaultValue);
  };
  if (isKept() || (!(await mine.again(isKept)) && isKept())) {
    tell("The key has changed: refresh to see it.");
  }
}
