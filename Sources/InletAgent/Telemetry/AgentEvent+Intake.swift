internal import InletCore

/// Lines about files that were there before, and about what is made of files.
extension AgentEvent {
    var intakeLine: EventLine? {
        switch self {
        case .watchAdopted(let root, let files, let bytes):
            Self.line(
                "watch.adopted", .info, ("path", .path(root)), ("files", .count(files)), ("bytes", .number(bytes)))
        case .fileNotAdopted(let path, let reason):
            Self.line("file.not_adopted", .info, ("path", .path(path)), ("reason", .safe(reason)))
        case .fileDerived(let path, let name, let size, let duration):
            Self.line(
                "file.derived", .info, ("path", .path(path)), ("name", .safe(name)), ("size", .number(size)),
                ("duration_ms", .number(duration.milliseconds)))
        case .fileNotDerived(let path, let name, let reason):
            Self.line(
                "file.not_derived", .warning, ("path", .path(path)), ("name", .safe(name)), ("reason", .safe(reason)))
        default: nil
        }
    }
}
