// An editor of the official npm package: starts the command, sends one instruction, prints how the turn ended.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
const [sdk, answer, ...command] = process.argv.slice(2);
const acp = await import(sdk);
const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const app = acp.client({ name: "npm editor" });
app.onRequest(acp.methods.client.session.requestPermission, async () => {
  console.log("asked");
  if (answer === "never") await new Promise(() => {});
  return { outcome: { outcome: "selected", optionId: answer } };
});
await app.connectWith(stream, async (ctx) => {
  await ctx.request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  const { sessionId } = await ctx.request(acp.methods.agent.session.new, { cwd: "/tmp", mcpServers: [] });
  const told = await ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "go on" }] });
  console.log(told.stopReason);
});
child.kill();
process.exit(0);
