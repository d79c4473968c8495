package import InletConfig
package import InletCore
package import InletLinux
internal import SystemPackage

/// A `<file>.yaml` sidecar: finds it beside its file, reads it, and reports its errors in one line.
package enum SidecarFile {
    /// The content of a file's sidecar, if the route asks for one; empty without a sidecar. No folder rule applies:
    /// only the person who named the file reads it.
    ///
    /// - Throws: `ConfigErrors` for an invalid sidecar, `SystemError` for an unreadable one.
    package static func metadata(
        beside arrival: FoundFile, _ routes: RouteTable, facts: FileProperties = FileProperties(), on pool: BlockingPool
    ) async throws -> Sidecar {
        guard let path = try path(beside: arrival, routes, facts) else { return Sidecar() }
        return try await read(path, by: SourceRule(), on: pool)
    }

    /// Separate, because Swift 6.3.1 cannot optimise the look within a loop of an asynchronous function.
    private static func path(
        beside arrival: FoundFile, _ routes: RouteTable, _ facts: FileProperties
    ) throws(SystemError) -> RootedPath? {
        let route = routes.route(for: arrival.path, size: arrival.identity.size, facts: facts)
        for companion in route?.companions(of: arrival.path) ?? [] where companion.kind == .metadata {
            let path = RootedPath(arrival.root, companion.path)
            if try FileLook.look(at: path).identity != nil { return path }
        }
        return nil
    }

    /// The content of the sidecar at `path`. It is opened like a source: a link must not make other files readable.
    ///
    /// - Parameter rule: its folder's rule, checked on the open file.
    /// - Throws: `ConfigErrors` for an invalid sidecar, `SystemError` for one that is unreadable or refused.
    package static func read(
        _ path: RootedPath, by rule: SourceRule, on pool: BlockingPool
    ) async throws -> Sidecar {
        try SidecarMetadata.parse(try await content(path, rule, on: pool), file: name(path))
    }

    /// The labels from a unit's marker, or from the `.inlet.yaml` in its folder.
    ///
    /// - Throws: as `read`.
    static func unitLabels(
        _ path: RootedPath, isMarker: Bool, by rule: SourceRule, on pool: BlockingPool
    ) async throws -> [String: String] {
        try SidecarMetadata.unitLabels(try await content(path, rule, on: pool), file: name(path), isMarker: isMarker)
    }

    private static func content(
        _ path: RootedPath, _ rule: SourceRule, on pool: BlockingPool
    ) async throws -> [UInt8] {
        do {
            // One byte of room beyond the limit, so that a larger file is detected.
            let limit = SidecarMetadata.maximumBytes + (64 << 10)
            return try await pool.run { () throws(SystemError) in
                let source = try SourceFile(opening: path)
                // Another file may have taken its place since the look.
                if try source.look().refusal(by: rule) != nil {
                    throw SystemError(call: "open", path: source.path, code: .notPermitted, refusal: .ruledOut)
                }
                return try source.content(limit: limit)
            }
        } catch {
            guard error.code == .fileTooLarge else { throw error }
            let name = DisplayText.escape(FileName(path.path).bytes)
            throw ConfigErrors(list: [
                ConfigError(file: name, line: 1, column: 1, message: "the sidecar is larger than 64 KiB", excerpt: "")
            ])
        }
    }

    private static func name(_ path: RootedPath) -> FilePath {
        FilePath(root: nil, path.path.lastComponent.map { [$0] } ?? [])
    }

    /// One line: `clip.mp4.yaml:2:1: …; clip.mp4.yaml:5:3: …`.
    package static func reason(_ errors: ConfigErrors) -> String {
        errors.list.map { "\($0.file):\($0.line):\($0.column): \($0.message)" }.joined(separator: "; ")
    }
}
