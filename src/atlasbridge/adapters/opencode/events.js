// OpenCode's plugin for one run: tells the session host what is asked, in full, and hands its answer to OpenCode while
// the dialog stands there.  It decides nothing by itself; whatever fails here, OpenCode goes on as without it.

import { connect } from "node:net"
import { resolve } from "node:path"

const LIMIT = 20000
const MOST_CALLS = 200

export const AtlasBridge = async ({ client, directory }) => {
  const attachSocket = process.env.OPENCODE_ATLASBRIDGE_SOCKET
  const open = new Map() // the id of what is asked -> who waits for the answer
  const folders = new Map() // the id of a call -> where it would run: its question does not say it
  return {
    "tool.execute.before": async ({ callID }, { args }) => {
      if (folders.size >= MOST_CALLS) folders.clear()
      folders.set(callID, resolve(directory, String(args?.workdir ?? "")))
    },
    event: async ({ event }) => {
      try {
        if (event.type === "permission.replied") hangUp(open, event.properties.requestID ?? event.properties.permissionID)
        const said = describe(event, folders.get(event.properties?.tool?.callID) ?? directory)
        if (attachSocket && said) open.set(said.id, tell(attachSocket, said, (decided) => answer(client, event.properties, decided)))
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
  const subject = { ...about(asked), folder: directory }
  return { kind: "permission", id: asked.id, name: asked.permission, subject, answers: true }
}

// Another question may speak of a command, too, as the one for a folder outside does: that one does not ask to run it.
function about(asked) {
  const { command, filepath, diff, url } = asked.metadata ?? {}
  if (asked.permission === "bash" && command !== undefined) return { kind: "command", text: String(command), target: "" }
  if (asked.permission === "edit" && filepath) return { kind: "edit", text: changed(diff ?? ""), target: String(filepath) }
  if (asked.permission === "webfetch" && url) return { kind: "fetch", text: String(url), target: String(url) }
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

function tell(attachSocket, { kind, name, subject, answers = false }, decide) {
  const whole = { ...subject, text: subject.text.slice(0, LIMIT), complete: isWhole(subject), source: "event" }
  const missing_lines = subject.text.length > LIMIT ? subject.text.slice(LIMIT).split("\n").length : 0
  const message = { m: "structured", answers, kind, text: name, source: "opencode (its events)", subject: whole, missing_lines }
  const line = JSON.stringify(message) + "\n"
  const connection = connect(attachSocket, () => (answers ? connection.write(line) : connection.end(line)))
  connection.on("error", () => {}) // no session any more
  connection.unref()
  if (answers) listen(connection, decide)
  return connection
}

function isWhole({ text, target }) {
  return text.length <= LIMIT && !target.includes("\n")
}

function listen(connection, decide) {
  let heard = ""
  connection.setEncoding("utf8")
  connection.on("data", (data) => {
    const lines = (heard + data).split("\n")
    heard = lines.pop().slice(-LIMIT)
    for (const said of lines.map((line) => JSON.parse(line))) {
      if (!["decide", "over", "ended"].includes(said.m)) continue
      connection.end()
      if (said.m === "decide") decide(said)
    }
  })
}

// Once, or not at all.  A refusal ends the turn, as the dialog's own does; one with a reason lets the model hear it.
function answer(client, asked, { behavior, reason }) {
  const body = behavior === "allow" ? { reply: "once" } : { reply: "reject", ...(reason ? { message: reason } : {}) }
  const url = `/permission/${encodeURIComponent(asked.id)}/reply`
  client._client.post({ url, body, headers: { "Content-Type": "application/json" } }).catch(() => {})
}

function hangUp(open, id) {
  open.get(id)?.end()
  open.delete(id)
}
