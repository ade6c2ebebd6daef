// The language of this page: what a person chose here, else what the browser asks for.

import "/texts.js";

export const { t, use: useTexts } = globalThis.AtlasTexts;
const { choose, load } = globalThis.AtlasTexts;
const keep = (() => { try { return window.localStorage; } catch { return null; } })();

export const chosenLanguage = () => keep?.getItem("atlasbridge-language") || "";
export const language = () => choose(chosenLanguage());

export function chooseLanguage(tag) {
  if (tag) keep?.setItem("atlasbridge-language", tag); else keep?.removeItem("atlasbridge-language");
}

// Before the first view is drawn.
export async function loadLanguage() {
  if (!(await load(language()))) return;
  document.documentElement.lang = language();
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-text]"))) node.textContent = t(node.dataset.text);
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-label]"))) node.setAttribute("aria-label", t(node.dataset.label));
}
