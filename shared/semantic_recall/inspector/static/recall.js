// The form, and what a recall brings back.

import { ask } from "./api.js";
import { asCode } from "./code.js";
import { $, afterPause, body, counted, h, label, moment, speaker, visible } from "./dom.js";

const NUMBERS = ["top_k", "before", "after", "threshold", "max_tokens"];

/** The form: its fields as an endpoint takes them, and sliders that follow the numbers. */
export class Form {
  constructor(defaults, changed) {
    this.defaults = defaults;
    const later = afterPause(120, changed);
    for (const slider of document.querySelectorAll("input[type=range]")) {
      slider.addEventListener("input", () => {
        $(slider.dataset.of).value = slider.value === slider.dataset.none ? "" : slider.value;
        later();
      });
    }
    $("form").addEventListener("input", (event) => {
      this.follow();
      if (event.target.type !== "range") later();
    });
    $("form").addEventListener("submit", (event) => {
      event.preventDefault();
      changed();
    });
    this.reset();
  }

  reset() {
    for (const name of NUMBERS) $(name).value = this.defaults[name] ?? "";
    for (const radio of document.getElementsByName("ranking")) {
      radio.checked = radio.value === this.defaults.ranking;
    }
    this.follow();
  }

  /** Put the sliders where the numbers are. */
  follow() {
    for (const slider of document.querySelectorAll("input[type=range]")) {
      const number = $(slider.dataset.of).value;
      slider.value = number === "" ? slider.dataset.none : number;
      const span = slider.max - slider.min;
      slider.style.setProperty("--share", `${(100 * (slider.value - slider.min)) / span}%`);
      slider.setAttribute("aria-valuetext", number || $(slider.dataset.of).placeholder);
    }
  }

  /** Offer threads, and keep the choice if it is still there. */
  offer(threads, resource) {
    const select = $("thread");
    const chosen = this.thread;
    const options = threads.map((id) => h("option", { value: `:${id}` }, visible(id)));
    select.replaceChildren(h("option", { value: "" }, "none: a new one"), ...options);
    select.selectedIndex = threads.indexOf(chosen) + 1;
    // Threads without an owner cannot be searched together: there is no owner to name.
    const [all, one] = document.getElementsByName("scope");
    const ownerless = resource === null;
    if (ownerless !== all.disabled) (ownerless ? one : all).checked = true;
    all.disabled = ownerless;
  }

  get thread() {
    return $("thread").value ? $("thread").value.slice(1) : null;
  }

  fields() {
    const values = Object.fromEntries(NUMBERS.map((name) => {
      const { value, valueAsNumber } = $(name);
      return [name, value === "" ? null : valueAsNumber];
    }));
    const chosen = (name) => new FormData($("form")).get(name);
    return { ...values, query: $("query").value, thread_id: this.thread,
      scope: chosen("scope"), ranking: chosen("ranking") };
  }
}

let running = null;

/** Recall for the form's fields and draw it; an older recall still under way is dropped. */
export async function recall(fields, actions) {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  $("results").setAttribute("aria-busy", "true");
  try {
    if (!fields.query.trim()) return nothing();
    const found = await ask("recall", fields, signal);
    draw(found, fields, actions);
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  } finally {
    if (running.signal === signal) $("results").removeAttribute("aria-busy");
  }
}

function nothing() {
  $("summary").replaceChildren();
  $("dropped").replaceChildren();
  $("results").replaceChildren(h("div", { class: "empty" },
    h("p", {}, "Write what a user might say. You see at once which messages would come back, " +
      "how they scored, what was left out, and the block that the model would read."),
    h("p", {}, "Or choose a thread at the side and read it.")));
  prompt({ tokens: 0, block: "", chat: [] });
}

/** Say what went wrong where the results would be. */
export function failed(error) {
  $("summary").replaceChildren();
  $("dropped").replaceChildren();
  $("results").replaceChildren(h("p", { class: "error", role: "alert" }, visible(error.message)));
  prompt({ tokens: 0, block: "", chat: [] });
}

function draw(found, fields, actions) {
  const neighbours = found.messages.length - found.hits;
  const total = found.timings.total;
  $("summary").replaceChildren(found.messages.length
    ? h("span", {}, h("i", { class: "rank" }), h("strong", {}, counted(found.hits, "hit")), " and ",
      h("i", { class: "rank beside" }), `${counted(neighbours, "neighbour")}, `,
      counted(found.tokens, "token"))
    : "Nothing would be recalled.",
  ...(total === undefined ? [] : [h("span", { class: "time", title: steps(found.timings) },
    `${total.toFixed(1)} ms`)]));
  $("dropped").replaceChildren(...found.dropped.map(({ reason, count }) =>
    h("li", {}, h("strong", {}, count.toLocaleString("en")), " left out: ", visible(reason))));
  const best = (name) => Math.max(0, ...found.messages.map((message) => message[name] ?? 0));
  const scale = { score: best("score"), dense: 1, lexical: best("lexical") };
  const groups = new Map();
  for (const message of found.messages) {
    groups.set(message.thread_id, [...(groups.get(message.thread_id) ?? []), message]);
  }
  $("results").replaceChildren(...[...groups].map(([thread, messages]) =>
    h("section", { class: "group" },
      h("h2", { class: "thread" },
        h("button", { type: "button", class: "link", title: "Read the thread",
          onclick: () => actions.open(thread) }, label(thread)),
        messages[0].current && h("span", { class: "badge" }, "current")),
      h("ol", { class: "messages" },
        messages.map((message) => drawMessage(message, scale, actions))))));
  prompt(found, fields.max_tokens, asCode(fields, actions.defaults));
}

const steps = (timings) =>
  Object.entries(timings).map(([name, value]) => `${name} ${value.toFixed(2)} ms`).join(", ");

function drawMessage(message, scale, actions) {
  const text = message.parts.map(([part]) => part).join("").slice(0, 60);
  const kind = message.is_hit
    ? h("span", { class: "rank", title: `Hit ${message.rank}` },
      h("span", { class: "unheard" }, "Hit "), message.rank)
    : h("span", { class: "rank beside", title: "Neighbour of a hit" },
      h("span", { class: "unheard" }, "Neighbour"));
  return h("li", { class: `message ${message.is_hit ? "hit" : "neighbour"}` },
    kind,
    h("header", {}, speaker(message), moment(message.created_at),
      h("span", { class: "actions" }, h("button", { type: "button", class: "plain danger",
        "aria-label": `Forget: ${text || message.id}`, onclick: () => actions.forget(message),
      }, "Forget"))),
    h("div", { class: "said" }, body(message.parts, message)),
    h("dl", { class: "scores" },
      bar("score", message.score, scale.score, 2),
      bar("meaning", message.dense, scale.dense, 2, "cosine similarity to the query, to 1"),
      bar("words", message.lexical, scale.lexical, 1, "BM25")));
}

function bar(name, value, most, digits, title = null) {
  const share = value === null || most <= 0 ? 0 : Math.min(1, Math.max(0, value / most));
  const filled = h("i", {});
  filled.style.setProperty("width", `${100 * share}%`);
  return h("div", { class: name, title }, h("dt", {}, name),
    h("dd", {}, h("span", { class: "bar", "aria-hidden": "true" }, filled),
      h("span", { class: "value" }, value === null ? "–" : value.toFixed(digits))));
}

function prompt(found, budget = null, code = "") {
  $("tokens").textContent = found.tokens.toLocaleString("en");
  $("tokens-of").textContent = budget ? `of ${budget.toLocaleString("en")} tokens` : "tokens";
  $("gauge").hidden = !budget;
  if (budget) {
    const share = Math.min(1, found.tokens / budget);
    $("gauge").firstElementChild.style.setProperty("width", `${100 * share}%`);
  }
  const parts = [];
  if (found.block) {
    const cut = found.block_characters - [...found.block].length;
    parts.push(h("section", {}, h("h3", {}, "In the system message", copier(found.block)),
      h("pre", { tabindex: "0", dir: "auto", id: "block" }, visible(found.block)),
      cut > 0 && h("p", { class: "none" }, `… and ${counted(cut, "more character")}`)));
  }
  if (found.chat.length) {
    parts.push(h("section", {}, h("h3", {}, "As messages before the live ones"),
      h("ol", { class: "chat" }, found.chat.map(({ role, content }) =>
        h("li", {}, h("strong", {}, role), h("div", { dir: "auto" }, visible(content)))))));
  }
  if (!parts.length) parts.push(h("p", { class: "none" }, "Nothing is added to the prompt."));
  if (code) {
    parts.push(h("section", {}, h("h3", {}, "In Python", copier(code)),
      h("pre", { tabindex: "0", id: "code" }, visible(code))));
  }
  $("prompt").replaceChildren(...parts);
}

function copier(text) {
  const button = h("button", { type: "button", class: "plain", onclick: () =>
    navigator.clipboard.writeText(text).then(
      () => button.replaceChildren("Copied"),
      () => button.replaceChildren("The browser does not allow it")) }, "Copy");
  return button;
}
