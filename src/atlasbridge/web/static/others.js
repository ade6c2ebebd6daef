// The views that the first card does not need, by the names in their addresses.

export { auditView as audit, figuresView as figures, historyView as history, rulesView as rules } from "/records.js";
export { sessionView as session } from "/session.js";
export { sessionsView as sessions } from "/sessions.js";
