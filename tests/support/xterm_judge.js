// xterm.js without a screen, as a judge: reads one job per line (JSON), plays it, and prints what it shows at each mark.
//   node xterm_judge.js FOLDER_WITH_NODE_MODULES
// A job: {"rows", "cols", "steps": [["o", base64], ["r", rows, cols], ["s"]]}.  An answer: one state for each "s".
const path = require("path");
const readline = require("readline");
const fetch = (name) => require(path.join(process.argv[2], "node_modules", "@xterm", name));
const { Terminal } = fetch("headless");
const { Unicode11Addon } = fetch("addon-unicode11");

function state(terminal) {
  const buffer = terminal.buffer.active;
  const lines = [];
  const wrapped = [];
  for (let y = 0; y < terminal.rows; y++) {
    const line = buffer.getLine(buffer.baseY + y);
    const next = buffer.getLine(buffer.baseY + y + 1);
    lines.push(line ? line.translateToString(true) : "");
    wrapped.push(Boolean(next && y + 1 < terminal.rows && next.isWrapped));
  }
  return { lines, wrapped, cursor: [buffer.cursorY, Math.min(buffer.cursorX, terminal.cols - 1)], alternate: buffer.type === "alternate" };
}

async function play(job) {
  const terminal = new Terminal({
    rows: job.rows, cols: job.cols, scrollback: 200, allowProposedApi: true, reflowCursorLine: true, logLevel: "off",
  });
  terminal.loadAddon(new Unicode11Addon());
  terminal.unicode.activeVersion = "11"; // without it pictures above U+FFFF are one cell wide, as in no terminal of today
  const states = [];
  for (const step of job.steps) {
    if (step[0] === "o") await new Promise((done) => terminal.write(Buffer.from(step[1], "base64"), done));
    else if (step[0] === "r") terminal.resize(step[2], step[1]);
    else states.push(state(terminal));
  }
  terminal.dispose();
  return states;
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await play(JSON.parse(line))) + "\n");
  }
})();
