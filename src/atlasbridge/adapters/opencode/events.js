// OpenCode's plugin for one run: tells the session host what is asked, in full.  It decides nothing and says nothing;
// whatever fails here, OpenCode goes on as without it.

import { connect } from "node:net"

const LIMIT = 20000
const NAMES = { bash: "Bash", edit: "Edit", webfetch: "Fetch" }

export const AtlasBridge = async ({ directory }) => {
  const door = process.env.OPENCODE_ATLASBRIDGE_DOOR
  return {
    event: async ({ event }) => {
      try {
        const said = describe(event, directory)
        if (door && said) tell(door, said)
      } catch {
        // an event of another version: the screen decides
      }
    },
  }
}

function describe(event, directory) {
  if (event.type === "permission.asked") return permission(event.properties, directory)
  if (event.type === "question.asked") return question(event.properties)
  return null
}

function permission(asked, directory) {
  const { command, filepath, diff, url } = asked.metadata ?? {}
  const name = NAMES[asked.permission] ?? asked.permission
  const what = command ?? (filepath && filepath.split("/").pop()) ?? url ?? (asked.patterns ?? []).join(" ")
  const [first, ...rest] = String(what).split("\n")
  const lines = [`${name}: ${first}`, `in ${directory}`, ...rest]
  if (filepath) lines.push(filepath)
  if (diff) lines.push(...diff.split("\n").filter((line) => /^[-+](?![-+]{2} )/.test(line)))
  return { kind: "permission", text: lines.join("\n") }
}

function question(asked) {
  const lines = asked.questions.flatMap((one) => [
    one.question,
    ...one.options.map((option) => `- ${option.label}: ${option.description ?? ""}`),
  ])
  return { kind: "question", text: lines.join("\n") }
}

function tell(door, { kind, text }) {
  const message = { m: "structured", kind, text: text.slice(0, LIMIT), source: "opencode (its events)" }
  const connection = connect(door, () => connection.end(JSON.stringify(message) + "\n"))
  connection.on("error", () => {}) // no session any more
  connection.unref()
}
