"""inlet(1), and a page for each of its commands, from what `inlet --experimental-dump-help` says of them."""

import re

import roff

ENVIRONMENT = {
    "INLET_CONFIG": "The configuration file, where --config names none.",
    "XDG_CONFIG_HOME": "Where inlet/inlet.yaml is looked for, instead of ~/.config.",
    "XDG_STATE_HOME": "Where state_dir is without a key of that name, instead of ~/.local/state; not for root.",
    "NO_COLOR": "No colours on the terminal, whatever its value.",
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE":
        "Credentials of destinations of type s3 that have none in the configuration.",
}
FILES = {
    "~/.config/inlet/inlet.yaml": "The configuration of a person.",
    "/etc/inlet/inlet.yaml": "The configuration of the system's service.",
    "/var/lib/inlet": "Journal, lock, control socket, receipts and logins (state_dir).",
}


MANUAL = "file:///usr/share/doc/inlet/html/index.html"


def parts(discussion):
    """A discussion's paragraphs and its examples. Exit codes have a table of their own."""
    paragraphs, examples = [], []
    for block in re.split(r"\n\s*\n", discussion or ""):
        before, *after = re.split(r"(?m)^Examples?:", block, maxsplit=1)
        examples += [text.strip() for text in "".join(after).split("\n") if text.strip()]
        if before.strip() and not before.startswith("Exit codes:"):
            paragraphs.append(before.strip("\n"))
    return paragraphs, examples


def described(paragraphs):
    lines = []
    for text in paragraphs:
        if all(part.startswith("  ") for part in text.split("\n")):
            lines += roff.verbatim([part.removeprefix("  ") for part in text.split("\n")])
        else:
            lines += roff.paragraph(text)
    return lines


def subcommands(command):
    return [sub for sub in command.get("subcommands") or []
            if sub.get("shouldDisplay", True) and sub["commandName"] != "help"]


def arguments(command):
    own = [argument for argument in command.get("arguments") or [] if argument.get("shouldDisplay", True)]
    return [argument for argument in own if not {name["name"] for name in argument.get("names") or []} & {"help", "version"}]


def spelled(name):
    return ("--" if name["kind"] == "long" else "-") + name["name"]


def names(argument):
    """Short names first, as people look for them."""
    return sorted((spelled(name) for name in argument.get("names") or []), key=len)


def usage(full, command):
    """The same as `synopsis`, in plain text."""
    words = [full]
    for argument in arguments(command):
        name = [] if argument["kind"] == "positional" else [spelled(argument["preferredName"])]
        word = " ".join(name + ([] if argument["kind"] == "flag" else [f"<{argument.get('valueName') or 'value'}>"]))
        word += " ..." if argument["isRepeating"] else ""
        words.append(f"[{word}]" if argument["isOptional"] else word)
    return " ".join(words)


def value(argument):
    return roff.italic("<" + (argument.get("valueName") or "value") + ">")


def synopsis(full, command):
    words = [roff.bold(full)]
    for argument in arguments(command):
        name = [] if argument["kind"] == "positional" else [roff.bold(spelled(argument["preferredName"]))]
        word = " ".join(name + ([] if argument["kind"] == "flag" else [value(argument)]))
        word += "\\ ..." if argument["isRepeating"] else ""
        words.append("\\%" + (f"[{word}]" if argument["isOptional"] else word))
    return [".PP", " ".join(words)]


def options(command):
    lines = []
    for argument in arguments(command):
        tag = ", ".join(map(roff.bold, names(argument)))
        if argument["kind"] != "flag":
            tag = f"{tag} {value(argument)}".strip()
        body = [argument.get("abstract") or "", argument.get("discussion") or ""]
        body += [f"Default: {argument['defaultValue']}."] if argument.get("defaultValue") else []
        said = [roff.line(roff.escape(" ".join(text.split()))) for text in body if text.strip()]
        lines += roff.tagged(tag, *said)
    return lines


def leaves(full, command):
    below = [leaf for sub in subcommands(command) for leaf in leaves(f"{full} {sub['commandName']}", sub)]
    return below or [(full, command)]


def command_page(command, day, version):
    """The page of a command with all that is below it, as git has it of `git remote`."""
    full = f"inlet {command['commandName']}"
    name = full.replace(" ", "-")
    paragraphs, examples = parts(command.get("discussion"))
    found, below = leaves(full, command), []
    for path, leaf in found:
        own, samples = parts(leaf.get("discussion"))
        below += [roff.subheading(path), *described([leaf["abstract"], *own]), *options(leaf), *roff.verbatim(samples)]
    if command.get("defaultSubcommand"):
        below += roff.paragraph(f"Without one of them, '{full}' is '{full} {command['defaultSubcommand']}'.")
    return roff.page(name, 1, day, version, {
        "NAME": [f"{roff.code(name)} \\- {roff.escape(command['abstract'].rstrip('.'))}"],
        "SYNOPSIS": [text for leaf in found for text in synopsis(*leaf)],
        "DESCRIPTION": described([command["abstract"], *paragraphs]),
        **({"OPTIONS": options(command)} if found[0][1] is command else {"COMMANDS": below}),
        "EXAMPLES": roff.verbatim(examples),
        "SEE ALSO": ["\\fBinlet\\fR(1), \\fBinlet.yaml\\fR(5)"]})


def exit_status(exits):
    return [text for one in exits for text in roff.entry(str(one["code"]), one["meaning"].replace("`", "'"))]


def main_page(root, exits, day, version):
    paragraphs, examples = parts(root.get("discussion"))
    pages = [(f"{roff.bold('inlet-' + sub['commandName'])}(1)", sub["abstract"]) for sub in subcommands(root)]
    return roff.page("inlet", 1, day, version, {
        "NAME": [f"inlet \\- {roff.escape(root['abstract'].rstrip('.'))}"],
        "SYNOPSIS": [".PP", f"{roff.bold('inlet')} {roff.italic('<command>')} [{roff.italic('<options>')}]",
                     ".PP", f"{roff.bold('inlet')} {roff.bold('--help')} | {roff.bold('--version')}"],
        "DESCRIPTION": described([root["abstract"], *paragraphs]),
        "COMMANDS": [text for page, said in pages for text in roff.tagged(page, roff.line(roff.escape(said)))],
        "EXAMPLES": roff.verbatim(examples), "EXIT STATUS": exit_status(exits),
        "ENVIRONMENT": [text for one in ENVIRONMENT.items() for text in roff.entry(*one)],
        "FILES": [text for one in FILES.items() for text in roff.entry(*one)],
        "SEE ALSO": [", ".join(["\\fBinlet.yaml\\fR(5)", *(page for page, _ in pages)]),
                     *roff.paragraph(f"The manual: {MANUAL}, and /manual/ on the agent's page.")]})


def unexplained(full, command):
    """What is missing where a person looks for it: a command's sentence, its examples, an option's meaning."""
    if not command.get("abstract"):
        yield f"{full} has no abstract"
    if not parts(command.get("discussion"))[1]:
        yield f"{full} has no example"
    for argument in arguments(command):
        if not argument.get("abstract"):
            yield f"{full}: {argument.get('valueName') or argument.get('names')} is not explained"
    for sub in subcommands(command):
        yield from unexplained(f"{full} {sub['commandName']}", sub)
