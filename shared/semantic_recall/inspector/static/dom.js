// Builds the page out of text. Nothing here takes markup: what a message says is only ever shown.

export const $ = (id) => document.getElementById(id);

/** Return an element with attributes, listeners ("onclick") and children (nodes or text). */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== false));
  return node;
}

// Characters that can hide or turn text: they are named instead of obeyed. Joiners stay, emoji
// need them. A half of a surrogate pair shows as nothing anywhere.
const UNSEEN =
  /(?:[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e01ef}]|\p{Cs})+/gu;

const code = (character) =>
  `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** Return the nodes of a text, with unseen characters made visible. */
export function visible(text) {
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(UNSEEN)) {
    const codes = [...found[0]].map(code);
    const said = codes.length === 1 ? codes[0] : `${codes.length} unseen characters`;
    nodes.push(text.slice(end, found.index));
    nodes.push(h("span", { class: "unseen", title: codes.slice(0, 40).join(" ") }, said));
    end = found.index + found[0].length;
  }
  nodes.push(text.slice(end));
  return nodes.filter((node) => node !== "");
}

/** Return an id (or what stands for no id) kept apart from the text around it. */
export const label = (id, none = "no owner") =>
  h("bdi", { class: id === null ? "none" : null }, id === null ? none : visible(id));

export const counted = (count, noun) =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const MINUTE = new Intl.DateTimeFormat("en-GB", {
  dateStyle: "medium", timeStyle: "short", timeZone: "UTC",
});

/** Return a time in UTC, as a day or to the minute. */
export function moment(iso, form = "minute") {
  const when = new Date(iso);
  // Years before 1 and after 9999 are none of JavaScript's; the text is always right.
  const said = Number.isNaN(when.getTime()) ? iso : (form === "day" ? DAY : MINUTE).format(when);
  return h("time", { datetime: iso, title: `${iso} (UTC)` }, said);
}

/** Return who speaks: the name, and the role that nobody can choose. */
export function speaker(message) {
  const named = message.name !== null && message.name !== message.role;
  return h("span", { class: "speaker" },
    h("bdi", {}, visible(named ? message.name : message.role)),
    named && h("small", {}, " ", h("bdi", {}, visible(message.role))));
}

const LONG = 700;

/** Return the text of a message: `parts` are [text, is a word of the query]; long ones fold. */
export function body(parts, message) {
  const shown = parts.reduce((sum, [text]) => sum + [...text].length, 0);
  const node = h("div", { class: "text", dir: "auto" },
    parts.map(([text, marked]) => (marked ? h("mark", {}, visible(text)) : visible(text))));
  if (!shown) node.append(h("span", { class: "none" }, "no text"));
  const cut = message.characters - shown;
  if (cut > 0) node.append(h("p", { class: "none" }, `… and ${counted(cut, "more character")}`));
  if (shown <= LONG) return node;
  node.classList.add("folded");
  const unfold = h("button", { type: "button", class: "plain", "aria-expanded": "false",
    onclick: () => {
      const folded = node.classList.toggle("folded");
      unfold.setAttribute("aria-expanded", String(!folded));
      unfold.textContent = folded ? "Show all of it" : "Show less";
    } }, "Show all of it");
  return [node, unfold];
}

/** Return a function that waits for a pause before it does what it was last told. */
export function afterPause(milliseconds, work) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), milliseconds);
  };
}
