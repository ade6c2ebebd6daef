"""The answers that a line names, each with the key to type: `(eu, us, ap)`, `[y/N/d(iff)]`, `(Y)es/(N)o`,
`Use (m)odified or (d)eleted?`, `(1=yes, 0=no)`, `(p) Postpone, (df) Show diff`, `Abort, Retry, Fail?`.

Words with keys of their own count anywhere in a line. Words alone count only in brackets at its end, in quotes, or if
the line has no others.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt import vocabulary
from atlasbridge.core.values import frozen, replace

_PAIRED = lazy(  # `0 = LOW, 1 = HIGH:`, `(y=save, n=discard)?`
    r"(?<!\w)(?P<key>\w)\s?=\s?(?P<label>[^\W\d_](?:[\w' -]{0,40}?\w)?)(?=\s*[,;/)\]:?]|\s+(?:and|or)\s|\s+\w\s?=|\s*$)"
)
_MARKED = lazy(  # `(p) postpone`, `(m)odified`, `[s]kip all`, `o)verwrite`, `'s'kip`
    r"(?<!\w)[\[(](?P<coded>[A-Za-z?]{1,3})[\])]\s+(?P<label>[^\s(),:][^(),:]{0,60}?)\s*(?=,|:|\?|$|[\[(])"
    r"|(?<![\w'\])-])[\w'-]*+[\[(](?P<within>\w)[\])][a-zA-Z'-]+"
    r"(?:(?: [\w'-]+)*?(?=\s{2,}|\s*(?:[,;/|?:\[(]|$)|\s(?:or|and)\s))?"
    r"|(?<!\w)(?P<open>\w)\)[a-z][a-z'-]{2,}|(?<!\w)'(?P<quoted>\w)'[a-z]{2,}"
)
_BEHIND = lazy(  # `Replace (r), `, `Accept(a) Edit(e)`
    r"(?<![\w(])[^\W\d_][\w' -]{1,24} ?[\[(](?P<behind>[^\W\d_])[\])](?=\s*[,;/|?:]|\s+or\s|\s+[A-Z]|\s*$)"
)
_OFFER = (
    r"(?:\^\w|\w\(\w{1,20}\)|\w=\w{1,20}|\[?\(?[\w?.*+!…-]{1,24}\)?\]?|(?<=,)/(?=,))"  # one of a group: `y`, `[yes]`
)
_SEPARATOR = r"(?:\s*[,/|]\s*|\s+or\s+)"
_GROUP = lazy(rf"(?:[\[(<]|(?<!\w){{)\s?((?:{_OFFER}{_SEPARATOR}){{0,30}}{_OFFER})\s?[\])}}>]")
_BARE = lazy(r"(?<!\S)((?:[\w'?]{1,16}[,/]\s?){1,6}(?:\([\w']+\)|[\w']{1,16}|\?))\s*([?:]?)\s*$")  # without brackets
_QUOTED = lazy(  # `Choose from 'small', 'large':`
    r"\b(?:choose|select|enter|type|pick|one of|either)\b[^'\"`]{0,24}"
    r"((?P<mark>['\"`])[\w.+-]{1,24}(?P=mark)(?:(?:\s*[,/|]|,?\s+or)\s*(?P=mark)[\w.+-]{1,24}(?P=mark))+)(.*)",
    re.IGNORECASE,
)
_WORD = lazy(_OFFER)
_FRACTION = lazy(r"[\d.]++[a-zA-Z%]{0,3}+\s*+/\s*+[\d.]++[a-zA-Z%]{0,3}+")  # `(1/2)` and `(20/125k)`
_NAMED = lazy(r"\b(?:name|path|directory|folder|location)\b[^?]*$", re.IGNORECASE)
_WORD_IN_H = lazy(r"^(?=[^aeiou]*[aeiou])[a-z]*+(?<=[cgpst]h)$|^(?:zsh|ksh|csh|tcsh|mksh|ssh|pwsh)$", re.IGNORECASE)
_BRACKETS = lazy(r"[\[\]()]")
RANGE = lazy(r"[\[(](\d{1,4})\s*(?:-|–|\.\.|to)\s*(\d{1,4})(?:,[^\])]*)?[\])]")
MOST_NUMBERS = 9  # the specification's limit for extracted choices
SPAN = lazy(r"\b(\d{1,3})\s?[-–]\s?(\d{1,3})\b")
QUOTED_YES = lazy(r"[\"'`“‘<](yes|y)[\"'`”’>]", re.IGNORECASE)
_QUOTED_NO = lazy(r"[\"'`“‘<](no|n)[\"'`”’>]", re.IGNORECASE)
_YES_AND_NO = lazy(r"\b(yes)\W{1,3}(?:or\W)?(no)\b|\b(no)\W{1,3}(?:or\W)?(yes)\b", re.IGNORECASE)
TOLD_YES = lazy(
    r"\b(?:type|enter|write|answer|only)(?:\s+in)?(?:\s+the word)?\s+[\"'`“‘<]?(yes)\b(?!\W{1,3}(?:or\W+)?no\b)",
    re.IGNORECASE,
)
_LIMIT = lazy(
    r"(?:max(?:imum|\.)?(?: of)?|up to|at most|limit:?)\s*(\d{1,4})\s*(?:char|letter|digit|symbol)"
    r"|(\d{1,2})[- ]letter code",
    re.IGNORECASE,
)
_DEFAULT = lazy(r"(?:\bdefault:?\s+|[\[(](?:default[:=]?\s*)?)([^\]\[()]{1,60})(?:\]\)?|\))[\s:?>]*$", re.IGNORECASE)
_NO_DEFAULT = lazy(
    r"[/|,]|^\w+\s*-\s*\w+$|^(?:if|press|hit|optional|leave|e\.?g|for|or|enter|type|use|see)\b", re.IGNORECASE
)


@frozen
class Offer:
    key: str  # what is typed
    label: str  # as the line writes it
    own: bool = False  # it stands for words of the person's own: `[fingerprint]`


def offers_in(text: str) -> list[Offer]:
    """The answers that a line names: its words with keys, or else the words in its last brackets."""
    return keyed_words(text) or [_offer(word) for word in _words_in(text) or _numbers_in(text)]


def keyed_words(text: str) -> list[Offer]:
    """Words of a sentence, each with a key of its own."""
    named = re.search(r"\w\w\s?=", text)  # names and values of other things: `CN=Ada, C=UK`
    for pattern in (_MARKED, _BEHIND) if named else (_PAIRED, _MARKED, _BEHIND):
        matches = list(pattern.finditer(text))
        for lower in (True, False):  # keys are typed in lower case, unless their case tells them apart
            found = [offer for match in matches if (offer := _keyed(match, text, lower))]
            if 2 <= len(found) == len({offer.key for offer in found}):
                plain = says_yes_or_no(found) and ", " not in text
                return [replace(one, label=_BRACKETS.sub("", one.label)) for one in found] if plain else found
    return []


def says_yes_or_no(offers: list[Offer]) -> bool:
    return any(_BRACKETS.sub("", offer.label).lower() in ("yes", "no") for offer in offers if not offer.key.isdigit())


def _keyed(match: re.Match[str], text: str, lower: bool) -> Offer | None:
    how, asks = str(match.lastgroup), text.endswith((":", "?"))
    if how == "label":
        coded = match.groupdict().get("coded")
        return Offer(coded or match["key"], match["label"]) if asks or not coded else None
    key, name = match[how], match[0][: match.start(how) - match.start()]
    if how == "behind" and key.lower() not in name.lower():
        return None
    return Offer(key.lower() if lower else key, re.sub(r"^(\w)\)|^'(\w)'", r"(\1\2)", match[0]))


def _words_in(text: str) -> list[str]:
    for match in reversed(list(_GROUP.finditer(text))):
        path = "/" in match[1] and _NAMED.search(text[: match.start()])  # that is the default
        if _FRACTION.fullmatch(match[1]) or path or SPAN.search(match[1]):
            continue
        words = [word for word in _WORD.findall(match[1]) if word != "or"]
        if len(words) == 1:
            words = _letters(words[0], text[: match.start()], text[match.end() :])
        if len(words) >= 2 and _ends_asking(text[match.end() :]):
            return words
    bare = _BARE.search(text)
    words = _WORD.findall(bare[1]) if bare else []
    if bare and words and _stand_alone(words, text[: bare.start()], *bare.groups()):
        return words
    quoted = _QUOTED.search(text)
    asks = quoted and _ends_asking(re.sub(r"[\[(].*?[\])]", "", quoted[3]))
    return re.findall(r"[\w.+-]+(?=['\"`])", quoted[1]) if quoted and asks else []


def _numbers_in(text: str) -> list[str]:
    """The numbers of `Enter choice [1-4]:`."""
    span = RANGE.search(text) if vocabulary.speaks("choose", "picks", text) else None
    offered = range(int(span[1]), int(span[2]) + 1) if span and _ends_asking(text[span.end() :]) else ()
    return [str(at) for at in offered] if len(offered) <= MOST_NUMBERS else []


def _ends_asking(rest: str) -> bool:
    """Whether only a default and signs follow, or words that end in a sign: `(1/2) and Enter:`."""
    return not any(map(str.isalnum, rest)) or rest.rstrip().endswith((":", "?", ">", "]", ")"))


def _letters(word: str, before: str, behind: str) -> list[str]:
    """The keys in `[nyae]`, `[yaxH]`, `[ynW...]`: each letter once, with y and n, a capital, or an h for help. The
    words `Rome` and `bash` have none.
    """
    if pair := re.fullmatch(r"(\w)-(\w)", word):  # `Move or shoot? (m-s)`
        named = [re.search(rf"\b{key}\w+", before, re.IGNORECASE) for key in pair.groups()]
        return [f"{key}={name[0]}" for key, name in zip(pair.groups(), named, strict=True) if name]
    letters = word.rstrip(".…")
    once = letters.replace("?", "").isalpha() and len(set(letters.lower())) == len(letters) < 15
    marked = letters != letters.lower() and not letters.isupper() and not letters.istitle()
    known = {"y", "n"} <= set(letters.lower()) or marked or letters.endswith(("h", "?"))
    if not (once and known and any(map(str.isalnum, before))) or _WORD_IN_H.search(letters):
        return []
    abridged = letters != word or behind.lstrip(", ").startswith("or ?")  # no capital is the default
    return list(letters if abridged else letters.lower())


def _stand_alone(words: list[str], before: str, text: str, sign: str) -> bool:
    """Whether words without brackets are choices: `Retry/Ignore/Cancel?`, `Merge? y/n/all/q`, `Size a/b/(none):`."""
    if before.strip():
        asked = before.rstrip().endswith(("?", ":")) and {"y", "n"} <= {word.lower() for word in words}
        return "/" in text and (asked or bool(sign and words[-1].startswith("(")))
    if "/" in text:
        return bool(sign) and all(word[:1].isupper() and word[1:] for word in words)
    return sign == "?" and words[0][:1].isupper() and any(vocabulary.begins("cancel", word) for word in words)


def _offer(word: str) -> Offer:
    """`y`, `[yes]`, `d(iff)`, `a=always`."""
    short = re.fullmatch(r"(\w)\((\w+)\)", word)
    plain = word.strip("[]()")
    key, _, label = plain.partition("=")
    return Offer(short[1], short[1] + short[2]) if short else Offer(key, label or plain, word.startswith("["))


def spoken_words(text: str) -> tuple[str, str]:
    """The text to type for yes and for no: the letter, or the word as the question spells it."""
    if re.search(r"\bcapital|upper ?case", text, re.IGNORECASE):
        return "YES", "NO"
    told = QUOTED_YES.search(text) or TOLD_YES.search(text)
    if told:
        refused = _QUOTED_NO.search(text)
        return told[1], refused[1] if refused else "NO" if told[1].isupper() else "no"
    if default_in(text) in ("yes", "no"):
        return "yes", "no"
    pair = _YES_AND_NO.search(text)
    return (pair[1] or pair[4], pair[2] or pair[3]) if pair else ("y", "n")


def yes_no_default(text: str, yes: str, no: str) -> str:
    """The default: the one in upper case of `[j/N]`, or the one that has brackets or a word of its own: `[n]`."""
    for first, second, keys in ((yes, no, "yn"), (no, yes, "ny")):
        pair = re.search(rf"\b({re.escape(first)})\W*({re.escape(second)})\b", text, re.IGNORECASE)
        if pair and pair[1][0].isupper() != pair[2][0].isupper():
            return keys[pair[2][0].isupper()]
    marked = next((offer.key for offer in offers_in(text) if offer.own), "")  # `[y]/n`
    told = (marked or default_in(text)).lower()
    return told[:1] if told in ("y", "yes", "n", "no") else ""


def limits(text: str) -> dict[str, object]:
    out: dict[str, object] = {}
    size = _LIMIT.search(text)
    if size:
        out["max_length"] = int(size[1] or size[2])
    span = RANGE.search(text)
    if span and int(span[1]) < int(span[2]):
        out["min_choice"], out["max_choice"] = int(span[1]), int(span[2])
    return out


def default_in(text: str) -> str:
    match = _DEFAULT.search(text)
    value = match[1].strip() if match else ""
    return "" if _LIMIT.search(value) or _NO_DEFAULT.search(value) else value
