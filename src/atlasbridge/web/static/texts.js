// Texts by language, for the page and its service worker, so it is a plain script.  A text is named by its English words;
// `<tag>.json` has the others.
(() => {
  const LANGUAGES = ["en", "de", "es", "ja"];
  let texts = {};

  // The first of these tags that has a catalogue, then the first of the browser's, else English.
  const choose = (...wanted) => [...wanted, ...(globalThis.navigator?.languages || [])]
    .map((tag) => String(tag || "").split("-")[0].toLowerCase()).find((tag) => LANGUAGES.includes(tag)) || "en";

  const use = (known) => { texts = known; };

  // Where the file cannot be had, texts are English.
  async function load(tag, fetched = fetch) {
    const answer = tag === "en" ? null : await fetched(`/${tag}.json`).catch(() => null);
    use(answer?.ok ? await answer.json().catch(() => ({})) : {});
    return Boolean(answer?.ok);
  }

  // Values stand in braces; where one and many differ, both forms are given with a bar between them, and `count` decides.
  function t(english, values = {}) {
    const known = Object.hasOwn(texts, english) ? texts[english] : english;
    const forms = known.split("|");
    const form = forms.length > 1 && Number(values.count) !== 1 ? forms[1] : forms[0];
    return form.replace(/\{(\w+)\}/g, (whole, name) => (Object.hasOwn(values, name) ? String(values[name]) : whole));
  }

  // An answer that AtlasBridge named because the tool has only a letter or a key for it, by its value; what a tool calls its
  // answers is shown as it is.
  const named = () => new Map([["y", ["Yes", t("Yes")]], ["n", ["No", t("No")]], ["cancel", ["Cancel", t("Cancel")]], ["enter", ["Continue (Enter)", t("Continue (Enter)")]]]);
  const label = (value, english) => { const [own, said] = named().get(value) || []; return own === english ? said : english; };

  globalThis.AtlasTexts = { choose, label, load, t, use };
})();
