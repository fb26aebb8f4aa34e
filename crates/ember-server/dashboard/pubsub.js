// Publish and subscribe: the messages of channels, the channels with subscribers, and a form to publish.

import { ReplyError, permittedWithOtherKeys, run, runAll, userName } from "./api.js";
import { Bytes } from "./bytes.js";
import { split } from "./console.js";
import { button, bytesOf, el, refused, renew, table, tell, tile } from "./dom.js";
import { count, size, things } from "./format.js";
import { Stream } from "./streams.js";

/** The number of messages that are shown, the newest first, of characters of each, and of channels. */
const SHOWN_MAX = 200;
const LINE_MAX = 1000;
const CHANNELS_MAX = 100;

/** What can be subscribed to: the name of the choice, with its command, its example and the command that publishes. */
const KINDS = {
  patterns: { command: "PSUBSCRIBE", example: "news.* orders" },
  channels: { command: "SUBSCRIBE", example: "news orders" },
  "shard channels": { command: "SSUBSCRIBE", example: "orders{1}" },
};

/** The last inputs, which stay while another view is shown. */
const state = { kind: "patterns", names: "*", channel: "", message: "" };
const stream = new Stream(draw);

export const view = {
  title: "Pub/sub",
  async show(main) {
    if (main.querySelector("#pubsub")) {
      return;
    }
    stream.belongsTo(userName());
    const rows = tile("Messages", { id: "messages", class: "wide" }, el("div", { id: "rows" }));
    main.replaceChildren(el("div", { id: "pubsub", class: "tiles" }, subscribeForm(), await publishForm(), await channels(),
      rows));
    draw();
  },
  leave() {
    stream.stop();
  },
};

function subscribeForm() {
  const kind = el("select", { name: "kind" }, Object.keys(KINDS).map((name) => el("option", {}, name)));
  kind.value = state.kind;
  const names = el("input", { name: "names", autocapitalize: "off", autocomplete: "off", spellcheck: "false" });
  names.value = state.names;
  const form = el("form", { class: "row", "aria-label": "Subscribe" },
    el("label", { class: "inline" }, "To ", kind), el("label", { class: "inline" }, "Names ", names),
    el("button", { type: "submit", id: "start-stream" }, "Subscribe"), stream.buttons());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    Object.assign(state, { kind: kind.value, names: names.value });
    try {
      const words = split(names.value);
      if (words.length === 0) {
        throw new Error(`Enter names, for example ${KINDS[kind.value].example}`);
      }
      stream.open([KINDS[kind.value].command, ...words]).catch(stopped);
    } catch (error) {
      tell(error.message);
    }
  });
  return tile("Subscribe", { class: "half" }, form, el("p", { class: "faint" },
    "Words are separated by spaces. The subscription ends after an hour or 100,000 messages, and when you leave this ",
    "view."));
}

function stopped(error) {
  stream.end = error.message;
  draw();
}

async function publishForm() {
  const [may, mayShard] = await permittedWithOtherKeys([["PUBLISH", "", ""], ["SPUBLISH", "", ""]]);
  const channel = el("input", { name: "channel", autocapitalize: "off", autocomplete: "off", spellcheck: "false" });
  const message = el("input", { name: "message", autocapitalize: "off", autocomplete: "off", spellcheck: "false" });
  Object.assign(channel, { value: state.channel });
  Object.assign(message, { value: state.message });
  const publish = (command) => async () => {
    Object.assign(state, { channel: channel.value, message: message.value });
    const received = await run([command, channel.value, message.value]);
    tell(`Published to ${things(received, "subscriber")}.`);
  };
  if (!may && !mayShard) {
    return tile("Publish", { class: "half" }, el("p", { class: "faint" }, "This user may not publish."));
  }
  return tile("Publish", { class: "half" }, el("div", { class: "row" },
    el("label", { class: "inline" }, "Channel ", channel), el("label", { class: "inline" }, "Message ", message),
    may ? button("Publish", publish("PUBLISH")) : null,
    mayShard ? button("Publish to the shard channel", publish("SPUBLISH")) : null));
}

/** Lists the channels with subscribers. */
async function channels() {
  const place = el("div", {});
  const read = async () => {
    try {
      const names = await run(["PUBSUB", "CHANNELS"]);
      const shown = names.slice(0, CHANNELS_MAX);
      const [numbers, patterns] = await runAll([["PUBSUB", "NUMSUB", ...shown], ["PUBSUB", "NUMPAT"]]);
      const rows = shown.map((name, at) => [bytesOf(name), Array.isArray(numbers) ? count(numbers[2 * at + 1]) : "?"]);
      const more = names.length > CHANNELS_MAX ? `, the first ${CHANNELS_MAX} of ${count(names.length)}` : "";
      renew(place, table(`Channels with subscribers${more}`, [["channel"], ["subscribers", "number"]], rows,
        "No channel has subscribers."), el("p", { class: "faint" }, `${things(patterns, "pattern")} with subscribers`));
    } catch (error) {
      if (!(error instanceof ReplyError)) {
        throw error;
      }
      renew(place, refused(error));
    }
  };
  await read();
  return tile("Channels", { id: "channels", class: "wide" }, place, el("p", { class: "row" }, button("Refresh", read)));
}

function draw() {
  const place = document.querySelector("#pubsub #rows");
  if (!place) {
    return;
  }
  document.querySelector("#start-stream").setAttribute("aria-pressed", String(stream.isOpen));
  document.querySelector("#stop-stream").setAttribute("aria-disabled", String(!stream.isOpen));
  const rows = stream.rows.slice(-SHOWN_MAX).reverse().map(({ at_ms: at, channel, message, length, pattern }) => {
    const content = new Bytes(message);
    const { line } = content;
    const isCut = line.length > LINE_MAX || length > content.array.length;
    const text = isCut ? `${line.slice(0, LINE_MAX)}… (${size(length)})` : line;
    return [new Date(at).toLocaleTimeString("en", { hour12: false }), bytesOf(new Bytes(channel)),
      pattern ? bytesOf(new Bytes(pattern)) : "", el("div", { class: "bytes" }, text)];
  });
  renew(place, stream.summary("message"), table("Messages, the newest first",
    [["time", "when"], ["channel"], ["pattern"], ["message"]], rows,
    stream.isOpen ? "No message yet." : "Subscribe shows messages here."));
}
