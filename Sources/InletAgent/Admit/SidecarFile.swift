package import InletConfig
package import InletCore
package import InletLinux
internal import SystemPackage

/// A `<file>.yaml`: found beside its file, read, and what is wrong with it in one line.
package enum SidecarFile {
    /// What the sidecar beside a file says, where the file's route asks for one; nothing when there is none. No
    /// rule of a watched folder is asked: nobody but who names the file sees it.
    ///
    /// - Throws: `ConfigErrors` for one that cannot be understood, `SystemError` for one that cannot be read.
    package static func metadata(
        beside arrival: FoundFile, _ routes: RouteTable, mediaType: String? = nil, on pool: BlockingPool
    ) async throws -> Sidecar {
        guard let path = try path(beside: arrival, routes, mediaType) else { return Sidecar() }
        return try await read(path, by: SourceRule(), on: pool)
    }

    /// Apart, as Swift 6.3.1 cannot optimise a look in a loop of an asynchronous function.
    private static func path(
        beside arrival: FoundFile, _ routes: RouteTable, _ mediaType: String?
    ) throws(SystemError) -> RootedPath? {
        let route = routes.route(for: arrival.path, size: arrival.identity.size, mediaType: mediaType)
        for companion in route?.companions(of: arrival.path) ?? [] where companion.kind == .metadata {
            let path = RootedPath(arrival.root, companion.path)
            if try FileLook.look(at: path).identity != nil { return path }
        }
        return nil
    }

    /// What the sidecar at `path` says. It is opened as a source is: who may drop files must not have others read by a
    /// link.
    ///
    /// - Parameter rule: the one of its folder, which is asked of what was opened.
    /// - Throws: `ConfigErrors` for one that cannot be understood, `SystemError` for one that cannot be read, or may not be.
    package static func read(
        _ path: RootedPath, by rule: SourceRule, on pool: BlockingPool
    ) async throws -> Sidecar {
        try SidecarMetadata.parse(try await content(path, rule, on: pool), file: name(path))
    }

    /// The labels that a unit's marker, or the `.inlet.yaml` in its folder, gives its files.
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
            // Room for one that is too large by a little, so that its own error says so.
            let limit = SidecarMetadata.maximumBytes + (64 << 10)
            return try await pool.run { () throws(SystemError) in
                let source = try SourceFile(opening: path)
                // It was looked at before: another may be in its place.
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
