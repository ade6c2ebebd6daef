// The views that the first card does not need, by the names in their addresses.

export { auditView as audit } from "/audit.js";
export { figuresView as figures } from "/figures.js";
export { historyView as history } from "/records.js";
export { rulesView as rules } from "/rules.js";
export { sessionView as session } from "/session.js";
export { sessionsView as sessions } from "/sessions.js";
