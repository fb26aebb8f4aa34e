// A key that is shown as it changes: the server tells of each change, as long as somebody looks.

import { events } from "./api.js";
import { button, tell } from "./dom.js";

/** After this time a stream that was lost is asked for again. */
const AGAIN_MS = 1000;

/** What is followed: a key of a database, what shows it again, and what ends it. */
let followed = null;

/** Ends the following of any other key than this one. */
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
 * A button that has `again` called whenever the key has changed, until it is clicked at once more. `place` is where the key
 * is shown: what was typed there is not thrown away, so `again` is given what tells, when all has come, whether to keep it.
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
      // The first one comes when the server begins to look: what changed before that is not missed.
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
