package import InletCore

extension KeyTables {
    /// One entry of a route's `derive:`.
    package static let derive: [KeySpec] = [
        KeySpec(
            "thumbnail", .choice(DeriveRule.Preset.allCases.map(\.rawValue)),
            "A ready rule: vips for pictures, ffmpeg for videos. Either this, or name, command and suffix."),
        KeySpec("name", .string, "The rule's name, in logs."),
        KeySpec(
            "command", .list(.string),
            "A program and its arguments, run without a shell; {in} is the original, {out} the file to be made."),
        KeySpec("extensions", .list(.string), "The files it is for; without it, all of the route."),
        KeySpec("suffix", .string, "What follows the original's key, as in .thumb.jpg."),
        KeySpec(
            "timeout", .duration(offAllowed: false), default: "60s",
            "How long the program may take; then it is ended, and the original goes alone."),
        KeySpec("max_size", .bytes, default: "16MiB", "The largest file that the program may write."),
    ]
}
