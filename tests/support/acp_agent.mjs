// An agent of the official npm package: asks for permission once in every turn.
import { Readable, Writable } from "node:stream";
const acp = await import(process.argv[2]);
const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
const app = acp.agent({ name: "npm agent" });
app.onRequest(acp.methods.agent.initialize, ({ params }) => ({ protocolVersion: params.protocolVersion, agentCapabilities: {} }));
app.onRequest(acp.methods.agent.session.new, () => ({ sessionId: "s1" }));
app.onRequest(acp.methods.agent.session.prompt, async (ctx) => {
  const options = [{ kind: "allow_once", name: "Allow", optionId: "go" }, { kind: "reject_once", name: "Deny", optionId: "stop" }];
  const toolCall = { toolCallId: "c1", title: "Run", kind: "execute", rawInput: { command: "make deploy" } };
  const told = await ctx.client.request(acp.methods.client.session.requestPermission, { sessionId: ctx.params.sessionId, toolCall, options });
  return { stopReason: told.outcome.outcome === "selected" && told.outcome.optionId === "go" ? "end_turn" : "refusal" };
});
app.connect(stream);
