package import InletCore

extension KeyTables {
    /// The top-level keys about who is told what.
    static let notifications: [KeySpec] = [
        KeySpec("notify", .list(.section(notify)), "Who is told of what happens: webhooks and programs."),
        KeySpec(
            "ping_url", .secret, "An address that is asked regularly while the agent is well (a dead man's switch)."),
        KeySpec("ping_interval", .duration(offAllowed: false), default: "5m", "How often ping_url is asked."),
        KeySpec(
            "ping_allow_http", .boolean, default: "false",
            "Allow plain HTTP for ping_url to hosts other than loopback: the address, and what is wrong, are for all to read."
        ),
        KeySpec("ping_ca_file", .path, "A PEM file of certificates to trust beside the system's, for ping_url."),
    ]

    package static let notify: [KeySpec] = [
        KeySpec("name", .string, required: true, "The receiver's name, in logs and in `inlet notify`."),
        KeySpec("webhook", .secret, "The address that notices are posted to, as JSON. Either this or exec."),
        KeySpec(
            "exec", .list(.string),
            "A program and its arguments, run without a shell, with the notice on its standard input."),
        KeySpec(
            "secret", .secret,
            "Signs what is posted (Standard Webhooks, and X-Hub-Signature-256): whsec_ and base64, or any text."),
        KeySpec(
            "on", .list(.choice(NoticeEvent.allCases.map(\.rawValue))),
            "What it is told of; without it, everything but delivered."),
        KeySpec("routes", .list(.string), "Only files and batches of these routes."),
        KeySpec(
            "timeout", .duration(offAllowed: false), default: "10s",
            "How long the receiver may take; a program that takes longer is ended."),
        KeySpec("ca_file", .path, "A PEM file of certificates to trust beside the system's, for a webhook."),
        KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP to hosts other than loopback."),
    ]

    /// A service that is asked more often would count it as abuse.
    static let shortestPing = Duration.seconds(10)
}
