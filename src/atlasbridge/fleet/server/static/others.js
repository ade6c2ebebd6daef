// The fleet's views beside the first card; fetched once the server has answered.

export { machinesView as machines } from "/machines.js";
export { sessionView as session } from "/session.js";
export { sessionsView as sessions } from "/sessions.js";
