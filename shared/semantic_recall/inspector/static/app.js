// Puts the page together.

import { ask } from "./api.js";
import { Browser } from "./browse.js";
import { $, counted, h, visible } from "./dom.js";
import { forget } from "./forget.js";
import { failed, Form, recall } from "./recall.js";

const TABS = ["recall", "thread"];

function show(name) {
  for (const tab of TABS) {
    const selected = tab === name;
    $(`tab-${tab}`).setAttribute("aria-selected", String(selected));
    $(`tab-${tab}`).tabIndex = selected ? 0 : -1;
    $(`panel-${tab}`).hidden = !selected;
  }
}

function setUpTabs() {
  for (const tab of TABS) $(`tab-${tab}`).addEventListener("click", () => show(tab));
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: "recall", ArrowRight: "thread" };
    const name = steps[event.key];
    if (!name || $(`tab-${name}`).disabled) return;
    show(name);
    $(`tab-${name}`).focus();
  });
}

function drawFacts({ name, stats }) {
  const facts = [
    ["memory", visible(name)],
    ["holds", `${counted(stats.messages, "message")} in ${counted(stats.threads, "thread")}`],
    ["embedder", visible(stats.embedder ?? "none: words only")],
  ];
  if (stats.pending) facts.push(["waiting for vectors", stats.pending.toLocaleString("en")]);
  $("facts").replaceChildren(...facts.map(([term, value]) =>
    h("div", {}, h("dt", {}, term), h("dd", {}, value))));
}

async function start() {
  setUpTabs();
  const overview = await ask("overview");
  drawFacts(overview);

  const again = () => recall({ ...form.fields(), resource_id: browser.resource ?? null }, actions);
  const form = new Form(overview.options, () => {
    show("recall");
    again();
  });
  const actions = {
    defaults: overview.options,
    forget: (message) => forget(message, () => refresh().catch(failed)),
    open: (thread) => browser.open(thread).catch(failed),
  };
  const browser = new Browser({
    failed,
    forget: actions.forget,
    query: (text) => {
      $("query").value = text.slice(0, 2000);
      show("recall");
      $("query").focus();
      again();
    },
    use: (thread) => {
      $("thread").value = `:${thread}`;
      show("recall");
      again();
    },
    changed: ({ opened = false } = {}) => {
      const open = browser.thread !== undefined;
      $("tab-thread").disabled = !open;
      const listed = browser.threads.entries.map((info) => info.thread_id);
      form.offer([...new Set(open ? [browser.thread, ...listed] : listed)], browser.resource);
      if (opened) show("thread");
      else {
        if (!open) show("recall");
        if ($("query").value.trim()) again();
        else warmUp();
      }
    },
  });

  /** Have the embedder and the resource's messages loaded by the time that a query is typed. */
  const warmUp = () => {
    again();
    const { resource } = browser;
    if (resource != null) ask("recall", { query: "warm up", resource_id: resource }).catch(() => {});
  };

  async function refresh() {
    drawFacts(await ask("overview"));
    await browser.refresh();
    const panel = TABS.map((tab) => $(`panel-${tab}`)).find((one) => !one.hidden);
    panel.focus(); // the button that had the focus is gone
  }

  $("reset").addEventListener("click", () => {
    form.reset();
    again();
  });
  await browser.start();
  $("query").focus();
}

start().catch(failed);
