// Instructions for when a tool is done: what waits for one session, one more, one taken back.

import { call, get, may, post } from "/api.js";
import { PLAIN, el, show, toast } from "/dom.js";
import { ago } from "/words.js";
import { t } from "/language.js";

export function queuePanel(id) {
  const list = el("ol", { cls: "queue", role: "list" });
  const field = el("textarea", { id: "queue-words", rows: 2, maxlength: 4096, ...PLAIN });
  const form = el("form", { on: { submit: add } }, el("label", { for: "queue-words" }, t("An instruction for when it is done")),
    el("div", { cls: "row" }, el("div", { cls: "grow" }, field), el("button", { type: "submit" }, t("Queue it"))));
  const node = el("section", { cls: "panel stack", "aria-label": t("Queued instructions"), hidden: true },
    el("h2", {}, t("Queued")), list, may("answer") ? form : null, el("small", {}, t("Typed at its next idle input box, one at each, never into a question.")));

  async function back(item) {
    try { toast((await call("DELETE", `/queue/${item.queue_id}`)).message); } catch (error) { toast(error.message); }
    refresh();
  }

  async function add(event) {
    event.preventDefault();
    if (!field.value.trim()) return;
    try {
      toast((await post(`/sessions/${id}/queue`, { text: field.value })).message);
      field.value = "";
    } catch (error) { toast(error.message); }
    refresh();
  }

  async function refresh() {
    try {
      const mine = (await get("/queue")).queue.filter((item) => item.session_id === id);
      show(list, mine.map((item) => el("li", {}, el("span", { cls: "said" }, item.text), el("small", {}, `${item.by_name}, ${ago(item.created_at)}`),
        may("answer") ? el("button", { type: "button", cls: "quiet", on: { click: () => back(item) } }, t("Take back"), el("span", { cls: "unseen" }, `: ${item.text}`)) : null)));
      list.hidden = !mine.length;
      node.hidden = false;
    } catch { node.hidden = true; } // a hub that is away, or older than this page
  }
  return { node, refresh };
}
