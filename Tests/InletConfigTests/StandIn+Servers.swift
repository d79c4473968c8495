import InletCore

let vopiStandIn = DestinationType(
    name: "vopi", summary: "A VOPI server.",
    keys: [
        KeySpec("url", .string, required: true, "Its address."),
        KeySpec(
            "auth",
            .section([KeySpec("api_key", .secret, "A key."), KeySpec("refresh_token_file", .path, "A login.")]),
            required: true, "How to log in."),
        KeySpec("poll", .duration(offAllowed: false), default: "3s", "How often to look."),
        KeySpec("results", .path, required: true, "Where pictures go."),
        KeySpec("job", .section(jobKeys), "What jobs are like."),
        KeySpec("callback_url", .string, "Where it calls back."),
        KeySpec("soft_limit", .duration(offAllowed: false), default: "1h", "Long."),
        KeySpec("hard_limit", .duration(offAllowed: false), default: "6h", "Too long."),
        KeySpec("no_progress", .duration(offAllowed: false), default: "60s", "A stall."),
        KeySpec("max_in_flight", .integer(1...64), default: "2", "Videos at once."),
        KeySpec("ca_file", .path, "Certificates to trust."),
        KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
    ] + networkKeys,
    fields: [
        "fps", "batch_size", "commercial_versions", "ai_cleanup", "gemini_model", "stack_id", "callback_url",
        "estimated_duration",
    ].map { FieldSpec($0, "Of a job.") }, takesSidecars: false)

private let jobKeys = [
    KeySpec("fps", .integer(1...30), "Frames per second."), KeySpec("batch_size", .integer(1...100), "At once."),
    KeySpec("commercial_versions", .list(.choice(["transparent", "solid", "real", "creative"])), "Pictures."),
    KeySpec("ai_cleanup", .boolean, "Clean up."), KeySpec("gemini_model", .string, "The model."),
    KeySpec("stack", .choice(["classic", "frames_only"]), "The processors."),
]

let roboscopeStandIn = DestinationType(
    name: "roboscope", summary: "A Roboscope server.",
    keys: [
        KeySpec("url", .string, required: true, "Its address."),
        KeySpec("storage", .string, required: true, "Where files are stored."),
        KeySpec("token", .secret, "Its token."),
        KeySpec("chunk", .integer(1...1000), default: "100", "Markers at once."),
        KeySpec("presence", .boolean, default: "true", "Be seen."),
        KeySpec("locks", .boolean, default: "true", "Lock."),
        KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
        KeySpec("ca_file", .path, "Certificates to trust."),
        KeySpec("connections", .integer(1...64), default: "8", "At once."),
    ] + networkKeys,
    fields: [
        FieldSpec("space", default: "{folder[1]}", "Which space."), FieldSpec("name", "Its name."),
        FieldSpec("session_type", default: "inspection", "What kind."), FieldSpec("session_status", "How it ends."),
        FieldSpec("role", default: "auto", "What the file is."),
    ], takesSidecars: false)
