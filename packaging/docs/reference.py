"""The reference pages of the manual, in Markdown, made from what the program prints about itself."""

import re

import commands
import configuration

SPECIAL = re.compile(r"([\\`*_\[\]<>|~#])")


def plain(text):
    """Text of the program as Markdown; commands and options in quotes become code."""
    parts = re.split(r"'((?:inlet|-{1,2}[a-z])[^']*)'", " ".join(text.split()))
    return "".join(code(part) if index % 2 else SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))


def marked(text):
    """Text that is Markdown already, in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text):
    return f"`{text}`" if text else ""


def cell(text):
    """Code in a cell: a bar would end the cell."""
    return code(text.replace("|", "\\|"))


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(row) + " |" for row in lines] + [""]


def page(title, abstract, *blocks):
    return "\n".join([f"# {title}", "", abstract, "", *(line for block in blocks for line in block)]).rstrip() + "\n"


# MARK: - Configuration

def keys(section, prefix=""):
    """A row for each key, those of inner sections behind it."""
    needed = section.get("required") or []
    for name, schema in section["properties"].items():
        words = [plain(schema.get("description", ""))]
        words += ["**Required.**"] if name in needed else []
        default = schema.get("default")
        shown = configuration.shown(default) if default not in (None, "", [""]) else ""
        yield [cell(prefix + name), plain(configuration.kind(schema)), cell(shown), " ".join(words)]
        if below := configuration.inner(schema):
            yield from keys(below, f"{prefix}{name}.")


HEADS = ["key", "value", "default", "meaning"]


def configuration_page(program):
    properties = dict(program.schema["properties"])
    destinations = properties.pop("destinations")
    single = {name: schema for name, schema in properties.items() if not configuration.inner(schema)}
    needed = program.schema.get("required")
    blocks = [["## How values are written", ""],
              table(["", ""], [[f"**{name}**", plain(said)] for name, said in configuration.VALUES.items()]),
              ["## An example", "", "```yaml", *configuration.EXAMPLE.split("\n"), "```", ""],
              ["## Single keys", ""], table(HEADS, keys({"properties": single, "required": needed})),
              ["Keys that begin with `x-` are yours: Inlet ignores them.", ""]]
    for name, schema in properties.items():
        if name not in single:
            blocks += [[f"## {name}", "", plain(schema.get("description", "")), ""],
                       table(HEADS, keys(configuration.inner(schema)))]
    blocks += [["## destinations", "", plain(destinations["description"]), ""]]
    for choice in destinations["additionalProperties"]["oneOf"]:
        own = dict(choice["properties"])
        named = own.pop("type")
        said = named["description"]
        blocks += [[f"### type: {configuration.kind(named)}", "", plain(said[0].upper() + said[1:] + "."), ""],
                   table(HEADS, keys({"properties": own, "required": choice.get("required")}))]
    return page("Configuration keys", "Look up every key of `inlet.yaml`, its values and its default. "
                "The man page inlet.yaml(5) has the same.", *blocks)


# MARK: - Commands

def command_block(full, command, level):
    paragraphs, examples = commands.parts(command.get("discussion"))
    lines = ["#" * level + f" {full}", "", plain(command["abstract"]), ""]
    for text in paragraphs:
        if all(part.startswith("  ") for part in text.split("\n")):
            lines += ["```text", *(part.removeprefix("  ") for part in text.split("\n")), "```", ""]
        else:
            lines += [plain(text), ""]
    below = commands.subcommands(command)
    if not below:
        lines += ["```text", commands.usage(full, command), "```", ""]
    rows = []
    for argument in commands.arguments(command):
        names = ", ".join(commands.names(argument))
        shown = names if argument["kind"] == "flag" else f"{names} <{argument.get('valueName') or 'value'}>".strip()
        body = [argument.get("abstract") or "", argument.get("discussion") or ""]
        default = argument.get("defaultValue") or ""
        rows.append([cell(shown), cell(default), " ".join(plain(text) for text in body if text.strip())])
    if rows:
        lines += table(["argument", "default", "meaning"], rows)
    if examples:
        lines += ["```sh", *examples, "```", ""]
    if default := command.get("defaultSubcommand"):
        lines += [f"Without a subcommand, `{full}` runs `{full} {default}`.", ""]
    for sub in below:
        lines += command_block(f"{full} {sub['commandName']}", sub, min(level + 1, 4))
    return lines


def commands_page(program):
    found = commands.subcommands(program.root)
    blocks = [command_block(f"inlet {command['commandName']}", command, 2) for command in found]
    words = [[code(name), plain(said)] for name, said in commands.ENVIRONMENT.items()]
    files = [[code(name), plain(said)] for name, said in commands.FILES.items()]
    return page("Commands", "Look up every command with its options and examples. `inlet help COMMAND` and the man pages "
                "print the same; [Exit codes](Reference-ExitCodes.md) lists how they end.", *blocks,
                ["## Environment", ""], table(["variable", "meaning"], words),
                ["## Files", ""], table(["file", "meaning"], files))


# MARK: - Events, metrics, codes

def events_page(program):
    groups = {}
    for event in program.reference["events"]:
        groups.setdefault(event["name"].split(".")[0], []).append(event)
    job = ["job", "path", "destination", "route"]
    blocks = []
    for group, events in groups.items():
        rows = []
        for event in events:
            names = [code(field["name"]) + (" (optional)" if field["optional"] else "") for field in event["fields"]]
            if [field["name"] for field in event["fields"][:4]] == job:
                names[:4] = ["*job…*"]
            text = re.sub(r"\\\{(\w+)\\\}|\{(\w+)\}", lambda field: code(field[1] or field[2]), plain(event["sentence"]))
            notes = [marked(event["note"])] if event.get("note") else []
            notes += [f"Before 0.9: {code(event['was'])}."] if event.get("was") else []
            rows.append([code(event["name"]), ", ".join(event["levels"]), ", ".join(names), " — ".join([text, *notes])])
        blocks += [[f"## {group}", ""], table(["event", "level", "fields", "text"], rows)]
    return page("Log events", "Look up every event of the log, with its level, its fields and its text. "
                "Names and fields are stable: filters can rely on them.",
                ["Every line also has `ts`, `level` and `event`. *job…* stands for `job`, `path`, `destination` and `route`. In the "
                 "text, a part in brackets appears only when its fields have values. The first level is the usual one. "
                 "[Logs](Logs.md) explains formats, files and filters.", ""], *blocks)


def metrics_page(program):
    rows = [[code(one["name"]), one["type"], " ".join(map(code, one["labels"])), plain(one["help"])]
            for one in program.reference["metrics"]]
    return page("Metrics", "Look up every metric that `/metrics` serves for Prometheus. "
                "[Metrics and alerts](Metrics.md) explains how to read them.",
                table(["metric", "type", "labels", "meaning"], rows))


def errors_page(program):
    verdicts = [[code(one["name"]), marked(one["meaning"])] for one in program.reference["verdicts"]]
    rows = [[code(one["code"]), one["verdict"], marked(one["meaning"]), marked(one.get("remedy", ""))]
            for one in program.reference["errors"]]
    return page("Error codes", "Look up what an error code means and what to do about it. Log lines, receipts, the API and the "
                "command line use the same codes.",
                ["## What Inlet does", "", "The usual consequence of a code. The service's answer can lead to another; the log "
                 "line says what Inlet did.", ""], table(["verdict", "meaning"], verdicts),
                ["## Codes", ""], table(["code", "verdict", "meaning", "remedy"], rows))


def exits_page(program):
    rows = [[code(str(one["code"])), code(one.get("name", "")), marked(one["meaning"])] for one in program.reference["exits"]]
    return page("Exit codes", "Look up what an exit code of `inlet` means. All commands share this table; the names are those of "
                "sysexits(3).", table(["code", "name", "meaning"], rows))


# MARK: - Schemas, the API, --json

# Their commands print the servers' own objects.
SERVERS = {"roboscope", "vopi"}

def type_of(schema, place):
    """A schema in a few words; named ones link to their chapter in `place`."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return f"[{name}]({place}#{name.lower()})"
    if "enum" in schema:
        return " \\| ".join(code(str(word)) for word in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return "list of " + type_of(schema["items"], place)
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return "map of " + type_of(schema["additionalProperties"], place)
    if "pattern" in schema:
        return cell(schema["pattern"])
    if "minimum" in schema:
        return f"integer from {schema['minimum']}" + (f" to {schema['maximum']}" if "maximum" in schema else "")
    return {"date-time": "time (RFC 3339)"}.get(schema.get("format"), kind or "any value")


def fields(schema, place):
    if not schema.get("properties"):
        return [type_of(schema, place)[:1].upper() + type_of(schema, place)[1:] + ".", ""]
    needed = schema.get("required") or []
    rows = [[code(name), type_of(one, place), "yes" if name in needed else "no", plain(one.get("description", ""))]
            for name, one in sorted(schema["properties"].items())]
    return table(["field", "type", "always", "meaning"], rows)


def schema_blocks(schemas, place):
    return [line for name, schema in sorted(schemas.items()) for line in [f"### {name}", "", *fields(schema, place)]]


NEEDS = {"nothing": "no login", "cards": "any login, the kiosk's too", "read": "the read-only token",
         "full": "the token or the password", "socket": "the control socket"}


def endpoint_block(path, method, endpoint):
    lines = [f"### {method.upper()} {path}", "", plain(endpoint["summary"]) + f" Needs {NEEDS[endpoint['x-inlet-need']]}.", ""]
    rows = [[code(one["name"]), one["in"], type_of(one["schema"], ""), "yes" if one["required"] else "no",
             plain(one.get("description", ""))]
            for one in endpoint.get("parameters", []) if one["in"] != "header"]
    if rows:
        lines += table(["parameter", "in", "type", "required", "meaning"], rows)
    body = endpoint.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body and body.get("properties") != {}:
        lines += [f"Body: {type_of(body, '')}.", ""]
    (kind, answer), = endpoint["responses"]["200"]["content"].items()
    shown = type_of(answer["schema"], "") if kind == "application/json" else code(kind)
    return lines + [f"Answer: {shown}.", ""]


def api_page(program):
    api = program.reference["api"]
    blocks = [endpoint_block(path, method, endpoint) for path, methods in sorted(api["paths"].items())
              for method, endpoint in sorted(methods.items())]
    return page("API", "Look up every endpoint of the page's API and of the control socket. A running agent serves the same as an "
                "OpenAPI document at `/api/v1/openapi.json`.",
                ["A request sends its token as `Authorization: Bearer TOKEN`. Without one, a POST on the port needs the header "
                 "`X-Inlet: 1`. Inlet refuses parameters and keys that this page does not list (400). "
                 "[The page and the API](Page.md) explains logins, proxies and limits.", "", "## Endpoints", ""], *blocks,
                ["## Schemas", ""], schema_blocks(api["components"]["schemas"], ""))


def json_page(program):
    answers, known = program.reference["answers"], program.reference["api"]["components"]["schemas"]
    schemas = answers["components"]["schemas"]
    place = "Reference-API.md"
    rows = []
    for command, one in sorted(answers["commands"].items()):
        name = one["schema"].get("$ref", "").rpartition("/")[2]
        rows.append([code(f"inlet {command}"), "one object a line" if one["lines"] else "one object",
                     type_of(one["schema"], place if name in known else "") if name else "see its page"])
    others = {name: schema for name, schema in schemas.items() if name not in known}
    more = [["## Schemas", ""], schema_blocks(others, "")] if others else []
    return page("JSON answers", "Look up the fields that reading commands print with `--json`. Names are stable; later versions can "
                "add fields.", ["Times are RFC 3339, sizes are bytes, durations are milliseconds where the name ends in `_ms`. The commands of "
                                + " and ".join(f"`inlet {name}`" for name in sorted(SERVERS))
                                + " print the objects of their servers unchanged.", "",
                                "## Commands", "", *table(["command", "prints", "fields"], rows)], *more)


def unanswered(program):
    """Commands with --json that have no schema."""
    known = program.reference["answers"]["commands"]
    for full, command in commands.leaves("inlet", program.root):
        options = {name["name"] for argument in commands.arguments(command) for name in argument.get("names") or []}
        if "json" in options and full.removeprefix("inlet ") not in known and full.split()[1] not in SERVERS:
            yield f"{full} has --json and no schema in 'inlet reference'"


PAGES = {
    "Reference-Configuration": configuration_page, "Reference-Commands": commands_page, "Reference-Events": events_page,
    "Reference-Metrics": metrics_page, "Reference-ErrorCodes": errors_page, "Reference-ExitCodes": exits_page,
    "Reference-API": api_page, "Reference-JSON": json_page,
}


def pages(program):
    """Their Markdown by their names."""
    return {name: make(program) for name, make in PAGES.items()}
