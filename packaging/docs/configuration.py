"""inlet.yaml(5): the configuration's keys from `inlet config schema`, behind a head that says how values are written."""

import roff

HEAD = """\
The configuration of inlet(1) is one YAML file. It says which folders are watched, where their files can go, and by \
which route each file goes where. 'inlet init' writes a first one, 'inlet check' tries it, 'inlet config show' prints \
it with every default filled in, and 'inlet config schema' its JSON schema, for editors.

An unknown key, a wrong unit or a missing destination is an error, which names the line and the column; all are \
reported at once, and nothing runs (exit status 78)."""

VALUES = {
    "Sizes": "512, 8MiB (powers of 1024), 6GB (powers of 1000).",
    "Durations": "250ms, 5s, 2m, 24h; where it is allowed, off.",
    "Rates": "20MiB/s, 160Mbit/s; 0 sends nothing, off is no limit.",
    "Paths": "Relative ones start at the configuration's folder, ~/ at HOME. A watched path with *, ? or [...] stands for "
             "every folder of such a name, as it comes and goes with its card or disk.",
    "Patterns": "As in .gitignore, below the watched folder.",
    "Secrets": "\"${env:NAME}\" is filled in from the environment, \"${file:PATH}\" from a file; \"$${\" is a plain \"${\".",
    "Templates": "key, with and labels take fields in braces: name stem ext dir folder[n] owner category sha256[:n] epoch_ms "
                 "seq volume, and the dates mtime:FORMAT@ZONE, now:FORMAT@ZONE and captured:FORMAT@ZONE (Unicode TR35). "
                 "{{ is a plain brace.",
}

EXAMPLE = """\
destinations:
  archive:
    type: s3
    endpoint: "https://s3.example.com"
    bucket: media
    access_key: "${env:S3_ACCESS_KEY}"
    secret_key: "${env:S3_SECRET_KEY}"
watch:
  - path: /srv/drop
routes:
  - name: everything
    to: archive
    on_success: archive"""


def kind(schema):
    """What a value may be, in a few words."""
    if "enum" in schema:
        return " | ".join(str(choice) for choice in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    if "examples" in schema:
        return "such as " + ", ".join(map(str, schema["examples"]))
    if "oneOf" in schema or "anyOf" in schema:
        return kind((schema.get("oneOf") or schema["anyOf"])[0]) + (", or a list" if "oneOf" in schema else "")
    named = schema.get("type")
    if named == "integer" and "minimum" in schema:
        return f"{schema['minimum']} to {schema['maximum']}"
    if named == "array":
        return "a list"
    # A mapping without keys of its own has the person's.
    if named == "object" and "properties" not in schema:
        return "a mapping"
    return {"object": "a section", "boolean": "true | false", "string": "text", "integer": "a number"}[named]


def shown(default):
    if isinstance(default, bool):
        return "true" if default else "false"
    return ", ".join(map(str, default)) if isinstance(default, list) else str(default)


def entry(name, schema, required):
    said = [schema.get("description", "")]
    said += ["Required."] if required else []
    said += [f"Default: {shown(schema['default'])}."] if schema.get("default") not in (None, "", [""]) else []
    body = [roff.line(roff.escape(" ".join(text for text in said if text)))]
    below = inner(schema)
    if below:
        body += [".RS", *keys(below), ".RE"]
    return roff.tagged(f"{roff.bold(name)} ({roff.escape(kind(schema))})", *body)


def inner(schema):
    """The section that a value is or is made of; nil where it is none."""
    for found in (schema, schema.get("items") or {}, *(schema.get("oneOf") or []), *(schema.get("anyOf") or [])):
        if found.get("properties"):
            return found
    return None


def keys(section):
    needed = section.get("required") or []
    return [text for name, schema in section["properties"].items() for text in entry(name, schema, name in needed)]


def page(schema, day, version):
    properties = dict(schema["properties"])
    destinations = properties.pop("destinations")
    kinds = roff.paragraph(destinations["description"])
    for choice in destinations["additionalProperties"]["oneOf"]:
        own = dict(choice["properties"])
        named = own.pop("type")
        said = named["description"]
        kinds += [roff.subheading("type: " + kind(named)), *roff.paragraph(said[0].upper() + said[1:] + "."),
                  *keys({"properties": own, "required": choice.get("required")})]
    return roff.page("inlet.yaml", 5, day, version, {
        "NAME": ["inlet.yaml \\- configuration of inlet"],
        "DESCRIPTION": [text for part in HEAD.split("\n\n") for text in roff.paragraph(part)],
        "VALUES": [text for one in VALUES.items() for text in roff.entry(*one)],
        "EXAMPLE": roff.verbatim(EXAMPLE.split("\n")),
        "KEYS": [*keys({"properties": properties, "required": schema.get("required")}),
                 *roff.paragraph("Keys that begin with x- are yours, and are not looked at.")],
        "DESTINATIONS": kinds,
        "FILES": roff.tagged(roff.bold("~/.config/inlet/inlet.yaml, /etc/inlet/inlet.yaml"),
                             "Where it is looked for, in this order."),
        "SEE ALSO": ["\\fBinlet\\fR(1), \\fBinlet\\-init\\fR(1), \\fBinlet\\-check\\fR(1)"]})
