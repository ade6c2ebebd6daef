// Allowing what a prompt asks for a while, from its card: first in words with examples, then for how long.

import { may, post } from "/api.js";
import { el, show, toast } from "/dom.js";
import { subscribe } from "/model.js";

const SPANS = [
  ["For 30 minutes", { for_s: 1800 }], ["5 times", { times: 5 }], ["In this session", {}], ["In this folder", { folder: true }],
];

export const examples = (made) => el("ul", { cls: "examples" },
  ...made.would.map((text) => el("li", { cls: "yes" }, el("span", { cls: "unseen" }, "allows "), el("code", {}, text))),
  ...made.would_not.map((text, at) => el("li", { cls: "no" }, el("span", { cls: "unseen" }, "does not allow "), el("code", {}, text), " ", el("small", {}, made.why_not?.[at] ?? ""))));

export function grantPanel(prompt) {
  if (!prompt.grantable || !may("answer")) return null;
  const path = `/prompts/${prompt.prompt_id}/grant`;
  const body = el("div", { cls: "stack" }, el("small", {}, "Looking …"));
  const panel = el("details", { cls: "granting" }, el("summary", {}, "Allow for a while …"), body);
  let asked = false;

  async function preview() {
    if (!panel.open || asked) return;
    asked = true;
    try {
      const made = await post(path, { preview: true });
      show(body, el("p", {}, "Without asking, this would be allowed: ", el("strong", {}, made.shape), "."), examples(made),
        el("div", { cls: "spans", role: "group", "aria-label": "For how long" }, ...SPANS.map(([label, limits]) => el("button", {
          type: "button", "data-span": label, on: { click: () => give(limits) },
        }, label))),
        el("small", {}, "In this session unless it says folder; twelve hours at most. What a rule denies or asks stays so."));
    } catch (error) {
      asked = error.status !== 0;
      show(body, el("p", { cls: "word" }, error.message));
    }
  }

  async function give(limits) {
    for (const button of body.querySelectorAll("button")) button.disabled = true;
    try {
      const made = await post(path, limits);
      toast(`Granted: ${made.words}.`);
      show(body, el("p", { cls: "word good", role: "status" }, `Granted: ${made.words}. `, el("a", { href: "#rules" }, "See or revoke it"), "."));
    } catch (error) {
      for (const button of body.querySelectorAll("button")) button.disabled = false;
      toast(error.message);
    }
  }

  panel.addEventListener("toggle", preview);
  return panel;
}

// Where several people must agree: who has, and how many are missing, as they come.
export function votes(prompt) {
  const wanted = prompt.constraints.quorum;
  if (!wanted) return null;
  const node = el("p", { cls: "word warn votes", role: "status" });
  const draw = (agreed) => {
    const missing = Math.max(0, wanted.approvals - agreed.length);
    const among = (wanted.person || []).filter((name) => !agreed.includes(name));
    const who = agreed.length ? `${agreed.join(", ")} agreed; ` : "";
    const more = missing === 1 ? "one more person" : `${missing} ${agreed.length ? "more " : ""}people`;
    node.textContent = `${who}${more}${among.length ? ` of ${among.join(", ")}` : ""} must agree (rule ${wanted.rule}). One refusal ends it.`;
  };
  let seen = false;
  const stop = subscribe((change) => {
    seen ||= node.isConnected;
    if (seen && !node.isConnected) stop();
    else if (change.prompt?.prompt_id === prompt.prompt_id) draw(change.prompt.agreed || []);
  });
  draw(prompt.agreed || []);
  return node;
}
