// Deleting one message: ask first, show the receipt after.

import { ask } from "./api.js";
import { $, h, label, moment, speaker, visible } from "./dom.js";

const said = (message) => message.text ?? message.parts.map(([text]) => text).join("");

/** Ask, delete, show the receipt; `done` is called when something was deleted and read. */
export function forget(message, done) {
  const dialog = $("dialog");
  const secure = h("input", { type: "checkbox", id: "secure" });
  const cancel = h("button", { type: "button", onclick: () => dialog.close() }, "Keep it");
  const confirm = h("button", { type: "button", class: "primary danger", onclick: () =>
    remove() }, "Forget it");
  const problem = h("p", { role: "alert" });
  let deleted = false;

  async function remove() {
    confirm.disabled = cancel.disabled = true;
    confirm.textContent = "Forgetting…";
    const { id, thread_id, resource_id } = message;
    try {
      const fields = { id, thread_id, resource_id, secure: secure.checked };
      receipt(await ask("forget", fields), secure.checked);
      deleted = true;
    } catch (error) {
      problem.className = "error";
      problem.replaceChildren(...visible(error.message));
      confirm.disabled = cancel.disabled = false;
      confirm.textContent = "Try again";
    }
  }

  function receipt(found, wantedSecure) {
    const close = h("button", { type: "button", class: "primary", onclick: () => dialog.close() },
      "Close");
    const rows = [
      ["messages removed", found.messages], ["vectors removed", found.vectors],
      ["threads removed", found.threads],
      ...Object.entries(found.remaining).map(([place, count]) =>
        [`left in ${place.replaceAll("_", " ")}`, count]),
    ];
    const scrubbed = found.secure ? ", and the freed bytes are overwritten" : "";
    const verdict = found.complete
      ? h("p", { class: "good" }, `Nothing of it is left${scrubbed}.`)
      : h("p", { class: "error" }, "Not everything is gone yet; see the counts.");
    dialog.replaceChildren(
      h("h2", { id: "dialog-title" }, found.messages ? "Forgotten" : "It was gone already"),
      verdict,
      wantedSecure && !found.secure ? h("p", { class: "error" },
        "The freed bytes were not all overwritten: another process owns the vector index.") : "",
      h("table", { class: "receipt" }, h("caption", {}, "Receipt"),
        h("tbody", {}, rows.map(([name, count]) =>
          h("tr", {}, h("th", { scope: "row" }, visible(name)), h("td", {}, String(count)))))),
      h("p", { class: "buttons" }, close));
    close.focus();
  }

  dialog.onclose = () => {
    if (deleted) done();
  };
  dialog.oncancel = (event) => {
    if (confirm.isConnected && confirm.disabled) event.preventDefault(); // it is being deleted
  };
  const text = said(message);
  dialog.replaceChildren(
    h("h2", { id: "dialog-title" }, "Forget this message?"),
    h("blockquote", {},
      h("header", {}, speaker(message), moment(message.created_at), label(message.thread_id)),
      h("div", { class: "text", dir: "auto" }, visible(text.slice(0, 400)),
        text.length > 400 ? "…" : "")),
    h("p", {}, "It is removed from the database, the full-text and vector indexes, caches and " +
      "waiting work, and a recount tells what is left. This cannot be undone."),
    h("p", {}, h("label", { class: "check" }, secure,
      " Overwrite the freed bytes too (slow: the files are rewritten)")),
    problem,
    h("p", { class: "buttons" }, cancel, confirm));
  dialog.showModal();
  cancel.focus();
}
