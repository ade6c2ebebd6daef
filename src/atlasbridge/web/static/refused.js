// Reads what a request was answered with, and says what is not known: an answer that broke off, or one of a proxy in between.

import { t } from "/words.js";

export class Refused extends Error {
  constructor(status, error, message) {
    super(message);
    this.status = status; // 0: it is not known whether it arrived
    this.error = error;
  }
}

// A status of 500 or more comes from a proxy, or from a server that failed on the way: the request may have been carried out.
export async function readAnswer(answer) {
  const content = await answer.json().catch(() => null);
  if (content === null || answer.status >= 500) throw new Refused(0, "offline", content?.message || t("The connection broke."));
  if (!answer.ok) throw new Refused(answer.status, content.error || "", content.message || t("Refused ({status}).", { status: answer.status }));
  return content;
}
