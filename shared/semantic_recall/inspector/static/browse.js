// The lists at the side, and the messages of a thread.

import { ask } from "./api.js";
import { $, afterPause, body, counted, h, label, moment, speaker } from "./dom.js";

/** A list that comes in pages: `draw` makes an entry, `fields` says what is asked for. */
class Pages {
  constructor(name, draw, fields) {
    this.name = name;
    this.draw = draw;
    this.fields = fields;
    this.entries = [];
    this.total = 0;
    this.turn = 0;
    this.find = $(`find-${name}`);
    this.more = $(`more-${name}`);
    this.more.addEventListener("click", () => this.load(this.entries.length));
    this.find.addEventListener("input", afterPause(150, () => this.load()));
  }

  /** Load the first page, or the one that begins at `skip`. */
  async load(skip = 0) {
    const turn = ++this.turn;
    const contains = this.find.value;
    const page = await ask(this.name, { ...this.fields(), skip, contains });
    if (turn !== this.turn) return; // a later call has overtaken this one
    this.entries = [...this.entries.slice(0, skip), ...page[this.name]];
    this.total = page.total;
    const rest = page.total - this.entries.length;
    $(`${this.name}-count`).textContent = page.total.toLocaleString("en");
    this.find.hidden = !rest && !skip && !contains;
    this.more.hidden = rest <= 0;
    this.redraw();
  }

  /** Load what is shown once more. */
  async reload() {
    const shown = this.entries.length;
    await this.load();
    while (this.entries.length < Math.min(shown, this.total)) await this.load(this.entries.length);
  }

  redraw() {
    const entries = this.entries.map((entry) => h("li", {}, this.draw(entry)));
    const nothing = h("li", { class: "none" }, "none");
    $(this.name).replaceChildren(...(entries.length ? entries : [nothing]));
  }
}

const entry = (current, onclick, name, ...facts) =>
  h("button", { type: "button", "aria-current": current ? "true" : null, onclick },
    h("span", { class: "name" }, name), h("span", { class: "facts" }, facts));

/** The lists and what is chosen in them; `changed` is told, `failed` gets errors. */
export class Browser {
  constructor({ changed, failed, forget, query, use }) {
    Object.assign(this, { changed, failed, forget, query, use });
    this.resource = undefined; // null is the resource of the threads without an owner
    this.thread = undefined;
    this.shown = 0;
    this.resources = new Pages("resources", (info) => this.drawResource(info), () => ({}));
    this.threads = new Pages("threads", (info) => this.drawThread(info), () => ({
      resource_id: this.resource,
    }));
  }

  async start() {
    await this.resources.load();
    const [first] = this.resources.entries;
    const owned = this.resources.entries.find((info) => info.resource_id !== null) ?? first;
    if (owned) await this.choose(owned.resource_id);
    else this.threads.redraw();
  }

  async choose(resource) {
    this.resource = resource;
    this.thread = undefined;
    this.threads.find.value = "";
    this.resources.redraw();
    await this.threads.load();
    this.changed();
  }

  /** Load everything again: something was deleted. */
  async refresh() {
    await this.resources.reload();
    await this.threads.reload();
    if (!this.threads.total && !this.threads.find.value) return this.start();
    if (this.thread !== undefined) {
      try {
        await this.messages(this.shown);
      } catch (error) {
        if (error.status !== 404) throw error;
        this.thread = undefined; // its last message was forgotten
      }
    }
    this.changed();
  }

  drawResource(info) {
    return entry(info.resource_id === this.resource,
      () => this.choose(info.resource_id).catch(this.failed), label(info.resource_id),
      counted(info.threads, "thread"), " · ", counted(info.messages, "message"));
  }

  drawThread(info) {
    return entry(info.thread_id === this.thread,
      () => this.open(info.thread_id).catch(this.failed), label(info.thread_id),
      counted(info.messages, "message"), " · ", moment(info.last_at, "day"));
  }

  /** Show a thread's messages. */
  async open(thread) {
    this.thread = thread;
    this.threads.redraw();
    await this.messages(0);
    this.changed({ opened: true });
  }

  /** Draw at least the last `wanted` messages of the thread. */
  async messages(wanted) {
    const place = { resource_id: this.resource, thread_id: this.thread };
    let shown = [];
    let page;
    do {
      page = await ask("messages", { ...place, skip: shown.length });
      shown = [...page.messages, ...shown];
    } while (page.more && shown.length < wanted);
    if (place.thread_id !== this.thread || place.resource_id !== this.resource) return;
    this.shown = shown.length;
    const more = h("button", { type: "button", class: "plain earlier", onclick: () =>
      this.messages(shown.length + 1).catch(this.failed) }, "Show earlier messages");
    $("panel-thread").replaceChildren(
      h("h2", { class: "thread" }, label(this.thread),
        h("span", { class: "facts" }, "of ", label(this.resource)),
        h("button", { type: "button", class: "plain", onclick: () => this.use(place.thread_id) },
          "Make it the current thread")),
      ...(page.more ? [more] : []),
      h("ol", { class: "messages" }, shown.map((message) => this.drawMessage(message))));
  }

  drawMessage(message) {
    const own = message.role === "user" ? "own" : "";
    return h("li", { class: `message ${own}` },
      h("header", {}, speaker(message), moment(message.created_at),
        h("span", { class: "actions" },
          message.text.trim() && h("button", { type: "button", class: "plain",
            "aria-label": `Ask: ${message.text.slice(0, 60)}`,
            onclick: () => this.query(message.text) }, "Ask this"),
          h("button", { type: "button", class: "plain danger",
            "aria-label": `Forget: ${message.text.slice(0, 60) || message.id}`,
            onclick: () => this.forget(message) }, "Forget"))),
      body([[message.text, false]], message));
  }
}
