// The page's texts in the reader's language.  A text is named by its English words; `languages/<tag>.json` has the others.

const LANGUAGES = ["en", "de", "es", "ja"];
const keep = (() => { try { return window.localStorage; } catch { return null; } })();
let texts = {};

// What a person chose on this page, else what the browser asks for, else English.
export function language() {
  const wanted = [keep?.getItem("atlasbridge-language"), ...(globalThis.navigator?.languages || [])];
  return wanted.map((tag) => String(tag || "").split("-")[0].toLowerCase()).find((tag) => LANGUAGES.includes(tag)) || "en";
}

export const chosenLanguage = () => keep?.getItem("atlasbridge-language") || "";

export function chooseLanguage(tag) {
  if (tag) keep?.setItem("atlasbridge-language", tag); else keep?.removeItem("atlasbridge-language");
}

// Before the first view is drawn.  Where the file cannot be had, the page is English.
export async function loadLanguage() {
  const tag = language();
  if (tag === "en") return;
  const answer = await fetch(`/${tag}.json`).catch(() => null);
  if (!answer?.ok) return;
  useTexts(await answer.json().catch(() => ({})));
  document.documentElement.lang = tag;
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-text]"))) node.textContent = t(node.dataset.text);
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-label]"))) node.setAttribute("aria-label", t(node.dataset.label));
}

export function useTexts(known) { texts = known; }

// Values stand in braces; where one and many differ, both forms are given with a bar between them, and `count` decides.
export function t(english, values = {}) {
  const known = Object.hasOwn(texts, english) ? texts[english] : english;
  const forms = known.split("|");
  const form = forms.length > 1 && Number(values.count) !== 1 ? forms[1] : forms[0];
  return form.replace(/\{(\w+)\}/g, (whole, name) => (Object.hasOwn(values, name) ? String(values[name]) : whole));
}
