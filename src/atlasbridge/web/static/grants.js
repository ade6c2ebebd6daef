// Allowing what a prompt asks for a while, from its card: first in words with examples, then for how long.

import { may, post } from "/api.js";
import { el, show, toast } from "/dom.js";
import { subscribe } from "/model.js";
import { t } from "/language.js";

const spans = () => [
  [t("For 30 minutes"), { for_s: 1800 }], [t("5 times"), { times: 5 }], [t("In this session"), {}], [t("In this folder"), { folder: true }],
];

export const examples = (made) => el("ul", { cls: "examples" },
  ...made.would.map((text) => el("li", { cls: "yes" }, el("span", { cls: "unseen" }, t("allows ")), el("code", {}, text))),
  ...made.would_not.map((text, at) => el("li", { cls: "no" }, el("span", { cls: "unseen" }, t("does not allow ")), el("code", {}, text), " ", el("small", {}, made.why_not?.[at] ?? ""))));

export function grantPanel(prompt) {
  if (!prompt.grantable || !may("answer")) return null;
  const path = `/prompts/${prompt.prompt_id}/grant`;
  const body = el("div", { cls: "stack" }, el("small", {}, t("Looking …")));
  const panel = el("details", { cls: "granting" }, el("summary", {}, t("Allow for a while …")), body);
  let asked = false;

  async function preview() {
    if (!panel.open || asked) return;
    asked = true;
    try {
      const made = await post(path, { preview: true });
      show(body, el("p", {}, t("Without asking, this would be allowed: "), el("strong", {}, made.shape), "."), examples(made),
        el("div", { cls: "spans", role: "group", "aria-label": t("For how long") }, ...spans().map(([label, limits]) => el("button", {
          type: "button", "data-span": label, on: { click: () => give(limits) },
        }, label))),
        el("small", {}, t("In this session unless it says folder; twelve hours at most. A rule that denies or asks still applies.")));
    } catch (error) {
      asked = error.status !== 0;
      show(body, el("p", { cls: "word" }, error.message));
    }
  }

  async function give(limits) {
    for (const button of body.querySelectorAll("button")) button.disabled = true;
    try {
      const made = await post(path, limits);
      toast(t("Granted: {words}.", { words: made.words }));
      show(body, el("p", { cls: "word good", role: "status" }, `${t("Granted: {words}.", { words: made.words })} `, el("a", { href: "#rules" }, t("See or revoke it")), "."));
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
    const who = agreed.length ? t("{people} agreed.", { people: agreed.join(", ") }) : "";
    const need = agreed.length ? t("One more person must agree|{count} more people must agree", { count: missing }) : t("1 person must agree|{count} people must agree", { count: missing });
    const whom = among.length ? ` ${t("of {people}", { people: among.join(", ") })}` : "";
    node.textContent = `${who} ${need}${whom} ${t("(rule {rule}).", { rule: wanted.rule })} ${t("One refusal ends it.")}`.trim();
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
