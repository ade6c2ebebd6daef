// OpenCode's plugin for one run: tells the session host what is asked, in full.  It decides nothing and says nothing;
// whatever fails here, OpenCode goes on as without it.

import { connect } from "node:net"

const LIMIT = 20000

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
  return { kind: "permission", name: asked.permission, subject: { ...about(asked), folder: directory } }
}

function about(asked) {
  const { command, filepath, diff, url } = asked.metadata ?? {}
  if (command !== undefined) return { kind: "command", text: String(command), target: "" }
  if (filepath) return { kind: "edit", text: changed(diff ?? ""), target: String(filepath) }
  if (url) return { kind: "fetch", text: String(url), target: String(url) }
  return { kind: "tool", text: (asked.patterns ?? []).join("\n"), target: String(asked.permission) }
}

function changed(diff) {
  return diff.split("\n").filter((line) => /^[-+](?![-+]{2} )/.test(line)).join("\n")
}

function question(asked) {
  const lines = asked.questions.flatMap((one) => [
    one.question,
    ...one.options.map((option) => `- ${option.label}: ${option.description ?? ""}`),
  ])
  return { kind: "question", name: "question", subject: { kind: "question", text: lines.join("\n"), target: "" } }
}

function tell(door, { kind, name, subject }) {
  const whole = { ...subject, text: subject.text.slice(0, LIMIT), complete: subject.text.length <= LIMIT, source: "event" }
  const message = { m: "structured", kind, text: name, source: "opencode (its events)", subject: whole }
  const connection = connect(door, () => connection.end(JSON.stringify(message) + "\n"))
  connection.on("error", () => {}) // no session any more
  connection.unref()
}
