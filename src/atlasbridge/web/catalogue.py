"""Everything the API can do, as one table: `app.py` makes routes of it, `openapi.py` the document."""

from __future__ import annotations

from typing import Any, Final

from atlasbridge.web import (
    admin_api,
    body,
    later_api,
    prompt_api,
    question_api,
    queue_api,
    record_api,
    rule_api,
    session_api,
)
from atlasbridge.web.operation import Operation, Param


def thing(**properties: Any) -> dict[str, Any]:
    """An object with these properties, all of them always there."""
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def listing(name: str, item: dict[str, Any], **more: Any) -> dict[str, Any]:
    return thing(**{name: {"type": "array", "items": item}}, **more)


TEXT: Final = {"type": "string"}
FLAG: Final = {"type": "boolean"}
TEXTS: Final = {"type": "array", "items": {"type": "string"}}
ANY: Final[dict[str, Any]] = {"type": "object"}
ANYS: Final = {"type": "array", "items": ANY}
PROMPT: Final = {"$ref": "#/components/schemas/Prompt"}
SESSION: Final = {"$ref": "#/components/schemas/Session"}
TOKEN: Final = thing(token_id=TEXT, name=TEXT, scope=TEXT, created_at=TEXT)
STREAM: Final = {"stream": "server-sent events: one JSON object per event"}

DEVICE: Final = thing(login_id=TEXT, name=TEXT, scope=TEXT, created_at=TEXT, seen_at=TEXT, until=TEXT, this=FLAG)
MAYBE: Final = {"type": ["object", "null"]}

WHO = Param("who", {"type": "string", "maxLength": 64}, "the id of a link, a login or a token", "")
CHALLENGE = Param("challenge", {"type": "string", "maxLength": 128}, "chosen by the caller, new each time", "")
REQUEST_KEY = Param("request_key", {"type": "string", "maxLength": 64}, "as it was given with the answer", "")
ALL = Param("all", {"type": "boolean"}, "also those that have ended", False)
PAST = Param("past", {"type": "boolean"}, "also what has scrolled off it, with colours, as `past`", False)
STYLED = Param("styled", {"type": "boolean"}, "with colours, as runs of [text, fg, bg, flags]", False)
SEARCH = Param("search", {"type": "string", "maxLength": 200}, "words in the question, the tool or the folder", "")
LIMIT = Param("limit", {"type": "integer", "minimum": 1, "maximum": 500}, "how many at most", 50)
BEFORE = Param("before", {"type": "string", "maxLength": 40}, "only those raised before this prompt", "")
SESSION_ID = Param("session", {"type": "string", "maxLength": 64}, "only of this session", "")
PROMPT_ID = Param("prompt", {"type": "string", "maxLength": 64}, "only of this prompt", "")
STATE = Param("state", {"type": "string", "maxLength": 32}, "only those in this state", "")
EVENTS = Param("events", {"type": "string", "maxLength": 1000}, "only these kinds, with commas between them", "")
BEFORE_SEQ = Param("before", {"type": "integer", "minimum": 0, "maximum": 2**53}, "only entries before this seq", 0)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "GET", "/health", record_api.health, "", "Whether the hub answers.", thing(status=TEXT, version=TEXT)
    ),
    Operation(
        "GET", "/hello", admin_api.hello, "", "The hub proves that it knows a link, a login or a token.",
        thing(epoch=TEXT, proof=TEXT), query=(WHO, CHALLENGE), errors=(401,),
    ),
    Operation(
        "POST", "/login", admin_api.login, "", "Let a browser in by its one-time link or the password.",
        DEVICE, body=body.LoginBody, errors=(401, 403, 429),
    ),
    Operation("POST", "/logout", admin_api.logout, "read", "End this browser's login.", thing(ended=FLAG)),
    Operation(
        "GET", "/devices", admin_api.list_devices, "admin", "Browsers that are let in.", listing("devices", DEVICE)
    ),
    Operation(
        "PUT", "/devices/{login_id}", admin_api.rename_device, "admin", "Give a browser another name.",
        DEVICE, body=body.NameBody, errors=(404, 409),
    ),
    Operation(
        "DELETE", "/devices/{login_id}", admin_api.end_device, "admin", "End one browser's login.",
        thing(ended=FLAG), errors=(404,),
    ),
    Operation(
        "DELETE", "/logins", admin_api.logout_all, "admin", "End every login.", thing(ended={"type": "integer"})
    ),
    Operation("GET", "/me", admin_api.me, "read", "Who is calling.", thing(identity=TEXT, scope=TEXT, device=MAYBE)),
    Operation(
        "PUT", "/me", admin_api.rename_me, "read", "Give this browser another name.",
        DEVICE, body=body.NameBody, errors=(404, 409),
    ),
    Operation(
        "GET", "/prompts", prompt_api.list_prompts, "read", "Open prompts.", listing("prompts", PROMPT, now=TEXT)
    ),
    Operation("GET", "/prompts/{prompt_id}", prompt_api.get_prompt, "read", "One prompt.", PROMPT, errors=(404,)),
    Operation(
        "POST", "/prompts/{prompt_id}/reply", prompt_api.reply, "answer", "Answer a prompt.",
        thing(stage=TEXT, message=TEXT, prompt_id=TEXT, audit_head=TEXT, prompt=PROMPT), body=body.ReplyBody,
        errors=(403, 404, 409, 429, 503),
    ),
    Operation(
        "POST", "/prompts/{prompt_id}/again", prompt_api.again, "answer", "Ask a prompt whose time is over once more.",
        thing(asked=FLAG), errors=(404, 409),
    ),
    Operation(
        "POST", "/prompts/{prompt_id}/later", later_api.postpone, "answer", "Answer later, or be asked again.",
        thing(stage=TEXT, message=TEXT, later_id=TEXT), body=body.LaterBody, errors=(403, 404, 409, 429, 503),
    ),
    Operation("GET", "/later", later_api.list_later, "read", "What is kept for later.", thing(later=ANYS)),
    Operation(
        "DELETE", "/later/{later_id}", later_api.revoke, "answer", "Take back what is kept for later.",
        thing(stage=TEXT, message=TEXT, later_id=TEXT), errors=(403, 404, 409, 429, 503),
    ),
    Operation(
        "GET", "/prompts/{prompt_id}/outcome", prompt_api.outcome, "answer", "Whether an answer arrived, by its key.",
        thing(arrived=FLAG, refused=FLAG, message=TEXT, audit_head=TEXT, prompt=PROMPT), query=(REQUEST_KEY,),
        errors=(404,),
    ),
    Operation(
        "POST", "/prompts/{prompt_id}/grant", prompt_api.grant, "answer", "Allow what it asks for a while.",
        thing(words=TEXT, shape=TEXT, would=TEXTS, would_not=TEXTS, why_not=TEXTS, grant_id=TEXT, answered=FLAG),
        body=body.GrantBody, errors=(404, 409),
    ),
    Operation(
        "GET", "/rules", rule_api.rules, "read", "Rules, grants, and what they decided.",
        thing(rules=ANYS, grants=ANYS, decisions=ANYS, tell=TEXT),
    ),
    Operation(
        "DELETE", "/grants/{grant_id}", rule_api.revoke_grant, "answer", "End a grant at once.",
        thing(revoked=FLAG), errors=(404,),
    ),
    Operation(
        "POST", "/prompts/{prompt_id}/report", prompt_api.report_prompt, "answer", "Report that this is no prompt.",
        thing(report=TEXT), body=body.ReportBody, errors=(404, 503),
    ),
    Operation(
        "POST", "/questions", question_api.ask, "ask", "Ask people, and wait for the answer.", STREAM,
        body=body.QuestionBody, errors=(403, 409, 422, 503),
    ),
    Operation(
        "DELETE", "/questions/{question_id}", question_api.withdraw, "ask", "Withdraw a question of one's own.",
        thing(withdrawn=FLAG), errors=(404,),
    ),
    Operation(
        "POST", "/notices", question_api.notify, "ask", "Tell people something without asking.", thing(told=FLAG),
        body=body.NoticeBody, errors=(422,),
    ),
    Operation("GET", "/events", prompt_api.events, "read", "All that happens.", STREAM, errors=(503,)),
    Operation(
        "GET", "/sessions", session_api.list_sessions, "read", "Sessions.", listing("sessions", SESSION), query=(ALL,)
    ),
    Operation(
        "POST", "/sessions", session_api.launch, "admin", "Start a session from the configured list.",
        thing(session_id=TEXT), body=body.LaunchBody, errors=(403, 404, 503),
    ),
    Operation("GET", "/sessions/{session_id}", session_api.get_session, "read", "One session.", SESSION, errors=(404,)),
    Operation(
        "PUT", "/sessions/{session_id}/name", session_api.rename, "admin", "Give a session another name.",
        thing(name=TEXT), body=body.SessionNameBody, errors=(404,),
    ),
    Operation(
        "GET", "/sessions/{session_id}/why", session_api.why, "read", "What was judged, and from what.",
        thing(why=TEXTS), errors=(404, 409),
    ),
    Operation(
        "GET", "/sessions/{session_id}/screen", session_api.screen, "read", "The session's screen.",
        ANY, query=(STYLED, PAST), errors=(404, 409),
    ),
    Operation(
        "GET", "/sessions/{session_id}/screen/stream", session_api.screen_stream, "read", "The screen, live.",
        STREAM, errors=(404, 503),
    ),
    Operation(
        "POST", "/sessions/{session_id}/typing", session_api.opt_in, "admin", "Switch typing into it on or off.",
        thing(on=FLAG), body=body.TypingBody, errors=(404,),
    ),
    Operation(
        "POST", "/sessions/{session_id}/keys", session_api.type_keys, "admin", "Type into the session.",
        thing(typed=FLAG, next={"type": "integer"}), body=body.KeysBody, errors=(403, 404, 409),
    ),
    Operation(
        "POST", "/sessions/{session_id}/resume", session_api.resume, "admin", "Let a stopped session go on.",
        thing(resumed=FLAG), errors=(404, 409),
    ),
    Operation(
        "POST", "/sessions/{session_id}/end", session_api.end, "admin", "End the session's tool.",
        thing(ending=FLAG), body=body.EndBody, errors=(404, 409),
    ),
    Operation("GET", "/queue", queue_api.list_queue, "read", "Instructions that wait.", thing(queue=ANYS)),
    Operation(
        "POST", "/sessions/{session_id}/queue", queue_api.add, "answer", "An instruction for when the tool is done.",
        thing(stage=TEXT, message=TEXT, queue_id=TEXT), body=body.QueueBody, errors=(403, 404, 409, 422, 429),
    ),
    Operation(
        "DELETE", "/queue/{queue_id}", queue_api.remove, "answer", "Take an instruction back.",
        thing(stage=TEXT, message=TEXT, queue_id=TEXT), errors=(403, 404, 409, 429),
    ),
    Operation(
        "POST", "/sessions/{session_id}/report", prompt_api.report_missed, "answer", "Report a missed prompt.",
        thing(report=TEXT), body=body.ReportBody, errors=(404, 503),
    ),
    Operation(
        "GET", "/launchers", session_api.list_launchers, "read", "What may be started.", listing("launchers", ANY)
    ),
    Operation(
        "GET", "/history", record_api.history, "read", "Prompts of every state, newest first.",
        listing("prompts", PROMPT), query=(SEARCH, LIMIT, BEFORE, SESSION_ID, STATE),
    ),
    Operation(
        "GET", "/audit", record_api.audit, "read", "The audit log, newest first.",
        listing("entries", ANY), query=(LIMIT, BEFORE_SEQ, EVENTS, SESSION_ID, PROMPT_ID),
    ),
    Operation("GET", "/audit/state", record_api.audit_state, "read", "Whether the audit chain is whole.", ANY),
    Operation("GET", "/statistics", record_api.statistics, "read", "Counts over all prompts.", ANY),
    Operation("GET", "/metrics", record_api.metrics, "read", "Metrics for Prometheus.", {"text": "Prometheus text"}),
    Operation(
        "POST", "/links", admin_api.make_link, "admin", "Make a one-time link to the page.",
        thing(url=TEXT, links=ANY, valid_s={"type": "number"}, fingerprint=TEXT), body=body.LinkBody,
    ),
    Operation(
        "PUT", "/password", admin_api.set_password, "admin", "Set the password of the login on the LAN.",
        thing(set=FLAG), body=body.PasswordBody,
    ),
    Operation("GET", "/tokens", admin_api.list_tokens, "admin", "API tokens.", listing("tokens", TOKEN)),
    Operation(
        "POST", "/tokens", admin_api.create_token, "admin", "Create a token; its secret is shown once.",
        thing(token=TEXT, **TOKEN["properties"]), body=body.TokenBody, errors=(409,),
    ),
    Operation(
        "DELETE", "/tokens/{token_id}", admin_api.revoke_token, "admin", "Revoke a token.",
        thing(revoked=FLAG), errors=(404,),
    ),
    Operation(
        "GET", "/push", admin_api.push_key, "read", "The key for push.", thing(available=FLAG, public_key=TEXT)
    ),
    Operation(
        "POST", "/push/subscriptions", admin_api.subscribe, "answer", "Ask for push messages.",
        thing(subscribed=FLAG), body=body.PushBody, errors=(409,),
    ),
    Operation(
        "DELETE", "/push/subscriptions", admin_api.unsubscribe, "answer", "End push messages.",
        thing(removed=FLAG), body=body.UnsubscribeBody,
    ),
)  # fmt: skip
