// The ways in which a prompt can be answered by one press.

export function ways(prompt) {
  if (prompt.constraints.secret) return [];
  if (prompt.choices.length) return prompt.choices;
  if (prompt.type === "yes_no") return [{ value: "y", label: "Yes" }, { value: "n", label: "No", refuses: true }];
  if (prompt.type === "confirm_enter") return [{ value: "enter", label: "Continue (Enter)" }];
  return [];
}

// Which of them a key means; null where it is not certain.
export function pick(key, prompt) {
  const offered = ways(prompt);
  if (prompt.constraints.multi_select) return null;
  if (/^[1-9]$/.test(key)) return offered.find((choice) => choice.value === key) || offered[Number(key) - 1];
  if (key === "n") { const no = offered.filter((choice) => choice.refuses); return no.length === 1 ? no[0] : null; }
  if (key === "y") return offered.find((choice) => !choice.refuses && !choice.always && /^y(es)?\b/i.test(choice.label));
  return null;
}
