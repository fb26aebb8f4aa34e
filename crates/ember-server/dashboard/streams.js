// A stream of rows from the server: the messages of MONITOR or of a subscription. The server limits their number, size
// and time.

import { events } from "./api.js";
import { el, tell } from "./dom.js";
import { things } from "./format.js";

/** The number of rows that are kept; the oldest are discarded. */
const ROWS_MAX = 1000;

/** The rows of a stream and its state; they stay while another view is shown, but the stream ends. */
export class Stream {
  /** `draw` is called when the rows or the state have changed. */
  constructor(draw) {
    Object.assign(this, { draw, user: null, rows: [], received: 0, missed: 0, discarded: 0, end: null, ending: null });
  }

  /** Forgets the rows. */
  clear() {
    Object.assign(this, { rows: [], received: 0, missed: 0, discarded: 0, end: null });
    this.draw();
  }

  /** Discards the rows of another user. */
  belongsTo(user) {
    if (this.user !== user) {
      this.stop();
      this.clear();
      this.user = user;
    }
  }

  get isOpen() {
    return this.ending !== null;
  }

  /** Streams the replies to a command until its end. Throws the error with which the server refuses it. */
  async open(command) {
    this.stop();
    this.clear();
    const ending = new AbortController();
    this.ending = ending;
    this.draw();
    try {
      for await (const { rows = [], missed = 0, end } of events("listen", { commands: [command] }, ending.signal)) {
        if (this.ending !== ending) {
          return;
        }
        this.add(rows, missed);
        this.end = end ?? null;
        this.draw();
      }
    } catch (error) {
      if (ending.signal.aborted) {
        return;
      }
      if (!error.isPassing) {
        throw error;
      }
      this.end = "the connection to the server was lost";
    } finally {
      if (this.ending === ending) {
        this.ending = null;
        this.draw();
      }
    }
  }

  add(rows, missed) {
    this.rows.push(...rows);
    this.received += rows.length;
    this.missed += missed;
    const surplus = Math.max(0, this.rows.length - ROWS_MAX);
    this.rows.splice(0, surplus);
    this.discarded += surplus;
  }

  /** Ends the stream, also on the server. */
  stop() {
    this.ending?.abort();
    this.ending = null;
    this.draw();
  }

  /** Describes the number of rows and the state; `one` is the noun for a row. */
  summary(one) {
    const parts = [things(this.received, one)];
    if (this.discarded > 0) {
      parts.push(`the last ${things(this.rows.length, "is", "are")} kept`);
    }
    if (this.missed > 0) {
      const missed = things(this.missed, "more was", "more were");
      parts.push(`${missed} not sent, because the server sends 1,000 a second at most`);
    }
    if (this.end) {
      parts.push(`ended: ${this.end}`);
    }
    return el("p", { class: "faint", role: "status" }, parts.join("; "));
  }

  /** Creates the buttons that end the stream and forget its rows; `draw` sets their state with `setButtons`. */
  buttons() {
    const act = (id, label, onclick) => el("button", { type: "button", id, onclick }, label);
    return [act("stop-stream", "Stop", () => this.isOpen && this.stop()),
      act("clear-stream", "Clear", () => {
        Object.assign(this, { rows: [], received: 0, missed: 0, discarded: 0, end: null });
        this.draw();
        tell("The rows were discarded.");
      })];
  }
}
